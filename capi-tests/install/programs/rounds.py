"""The same from Python: threads that load the library through ctypes, use it, unload it and end."""
import _ctypes
import ctypes
import sys
import threading

failed = []


def load_use_and_end(library):
    lib = ctypes.CDLL(library)
    for name in ("create", "destroy", "request_create", "request_wait", "memcpy_op"):
        getattr(lib, "aml_dma_cuda_" + name).restype = ctypes.c_int
    size = 256
    source, target = ctypes.create_string_buffer(b"x" * size, size), ctypes.create_string_buffer(size)
    dma, request = ctypes.c_void_p(), ctypes.c_void_p()
    codes = [lib.aml_dma_cuda_create(ctypes.byref(dma), 0)]
    data = ctypes.cast(dma, ctypes.POINTER(ctypes.c_void_p * 2)).contents[1]
    codes.append(lib.aml_dma_cuda_request_create(ctypes.c_void_p(data), ctypes.byref(request), target, source,
                                                 lib.aml_dma_cuda_memcpy_op, ctypes.c_void_p(size)))
    codes.append(lib.aml_dma_cuda_request_wait(ctypes.c_void_p(data), ctypes.byref(request)))
    codes.append(lib.aml_dma_cuda_destroy(ctypes.byref(dma)))
    if codes != [0, 0, 0, 0] or target.raw != source.raw:
        failed.append(codes)
    _ctypes.dlclose(lib._handle)


for _ in range(300):
    thread = threading.Thread(target=load_use_and_end, args=(sys.argv[1],))
    thread.start()
    thread.join()
print("rounds: ok" if not failed else failed[0])
sys.exit(bool(failed))
