//! Copies of rectangles and boxes: where their rows lie on both sides, and whether all of them may be touched.
//! Memory sorts and the moment of return follow the same rules as copies of one block.
use crate::copy::{self, INLINE, is_asynchronous, is_host};
use crate::memory::{Asker, Place, Sort, place};
use crate::result::*;
use crate::stream::Stream;
use crate::types::*;
use crate::work::{Region, Work};
use std::sync::Arc;

/// One side of a copy, as the program gave it.
pub struct Side {
    pub kind: u32,
    pub host: usize,
    pub device: CUdeviceptr,
    pub x: usize,
    pub y: usize,
    pub z: usize,
    /// Bytes between two rows, 0 where they follow each other.
    pub pitch: usize,
    /// Rows between two layers, 0 where they follow each other.
    pub rows: usize,
}

/// How much is copied.
#[derive(Clone, Copy)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// Both sides and the extent.
pub struct Request {
    pub dst: Side,
    pub src: Side,
    pub extent: Extent,
    /// Whether each side's memory is judged by a context named in the call.
    pub peer: bool,
}

impl CUDA_MEMCPY2D {
    /// The same as a box of one layer.
    pub fn request(&self) -> Request {
        let side = |kind, host, device, x, y, pitch| Side { kind, host, device, x, y, z: 0, pitch, rows: 0 };
        let (width, height) = (self.WidthInBytes, self.Height);
        Request {
            dst: side(self.dstMemoryType, self.dstHost, self.dstDevice, self.dstXInBytes, self.dstY, self.dstPitch),
            src: side(self.srcMemoryType, self.srcHost, self.srcDevice, self.srcXInBytes, self.srcY, self.srcPitch),
            extent: Extent { width, height, depth: 1 },
            peer: false,
        }
    }
}

impl CUDA_MEMCPY3D {
    /// The request that the struct states.
    pub fn request(&self, peer: bool) -> Request {
        let dst = Side {
            kind: self.dstMemoryType,
            host: self.dstHost,
            device: self.dstDevice,
            x: self.dstXInBytes,
            y: self.dstY,
            z: self.dstZ,
            pitch: self.dstPitch,
            rows: self.dstHeight,
        };
        let src = Side {
            kind: self.srcMemoryType,
            host: self.srcHost,
            device: self.srcDevice,
            x: self.srcXInBytes,
            y: self.srcY,
            z: self.srcZ,
            pitch: self.srcPitch,
            rows: self.srcHeight,
        };
        let extent = Extent { width: self.WidthInBytes, height: self.Height, depth: self.Depth };
        Request { dst, src, extent, peer }
    }
}

/// A side that was checked: the first byte and the distances.
struct Found {
    place: Place,
    pitch: usize,
    layer: usize,
}

impl Side {
    /// The distance of two rows and the number of rows of a layer, neither of them 0.
    fn distances(&self, extent: Extent) -> Result<(usize, usize)> {
        let row = self.x.checked_add(extent.width).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let column = self.y.checked_add(extent.height).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let pitch = if self.pitch == 0 { row } else { self.pitch };
        let rows = if self.rows == 0 { column } else { self.rows };
        if pitch < row || rows < column { Err(CUDA_ERROR_INVALID_VALUE) } else { Ok((pitch, rows)) }
    }

    /// Where it begins, how many bytes it spans, and the distance of its layers.
    fn span(&self, extent: Extent, (pitch, rows): (usize, usize)) -> Option<(usize, usize, usize)> {
        let single = extent.depth == 1 && self.z == 0;
        let layer = if single { 0 } else { pitch.checked_mul(rows)? };
        let start = self.z.checked_mul(layer)?;
        let start = start.checked_add(self.y.checked_mul(pitch)?)?.checked_add(self.x)?;
        let span = (extent.depth - 1).checked_mul(layer)?;
        let span = span.checked_add((extent.height - 1).checked_mul(pitch)?)?;
        Some((start, span.checked_add(extent.width)?, layer))
    }

    fn find(&self, stream: &Stream, extent: Extent, peer: bool) -> Result<Found> {
        let (base, as_device) = match self.kind {
            CU_MEMORYTYPE_HOST => (self.host, false),
            CU_MEMORYTYPE_DEVICE => (self.device as usize, true),
            CU_MEMORYTYPE_UNIFIED => (self.device as usize, false),
            // There are no arrays here, so none can be named.
            _ => return Err(CUDA_ERROR_INVALID_VALUE),
        };
        let distances = self.distances(extent)?;
        let (start, span, layer) = self.span(extent, distances).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let address = base.checked_add(start).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let any_device = peer || self.kind == CU_MEMORYTYPE_UNIFIED;
        let context = &*copy::acting(stream);
        let place = place(address, span, Asker { context, as_device, any_device })?;
        Ok(Found { place, pitch: distances.0, layer })
    }
}

/// Queues a copy, and returns when the memory says so; the synchronous form waits where host memory takes part.
pub fn submit(stream: &Arc<Stream>, request: &Request, synchronous: bool) -> Result {
    stream.check()?;
    let Extent { width, height, depth } = request.extent;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    let dst = request.dst.find(stream, request.extent, request.peer)?;
    let src = request.src.find(stream, request.extent, request.peer)?;
    let region = Region {
        dst: dst.place.bytes,
        dst_pitch: dst.pitch,
        dst_layer: dst.layer,
        src: src.place.bytes,
        src_pitch: src.pitch,
        src_layer: src.layer,
        width,
        height,
        depth,
    };
    let (to, from) = (dst.place.sort, src.place.sort);
    let bytes = width.checked_mul(height).and_then(|layer| layer.checked_mul(depth));
    let work = if !synchronous && from.is_none() && !is_host(to) && bytes.is_some_and(|bytes| bytes <= INLINE) {
        Work::StagedRegion(Box::new(region.staged()))
    } else {
        Work::Region(Box::new(region))
    };
    let on_its_way = match work {
        Work::StagedRegion(_) => true,
        _ if synchronous => to == Some(Sort::Device) && from == Some(Sort::Device),
        _ => is_asynchronous(to, from),
    };
    let done = stream.submit(work)?;
    if on_its_way {
        return Ok(());
    }
    done.wait();
    stream.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(x: usize, y: usize, z: usize, pitch: usize, rows: usize) -> Side {
        Side { kind: CU_MEMORYTYPE_DEVICE, host: 0, device: 0, x, y, z, pitch, rows }
    }

    const EXTENT: Extent = Extent { width: 10, height: 3, depth: 2 };

    #[test]
    fn rows_and_layers_without_a_distance_follow_each_other() {
        assert_eq!(side(0, 0, 0, 0, 0).distances(EXTENT), Ok((10, 3)));
        assert_eq!(side(2, 1, 0, 0, 0).distances(EXTENT), Ok((12, 4)));
        assert_eq!(side(2, 1, 0, 64, 8).distances(EXTENT), Ok((64, 8)));
    }

    #[test]
    fn rows_longer_than_their_distance_are_refused() {
        for bad in
            [side(1, 0, 0, 10, 3), side(0, 1, 0, 10, 3), side(usize::MAX, 0, 0, 64, 8), side(0, usize::MAX, 0, 64, 8)]
        {
            assert_eq!(bad.distances(EXTENT), Err(CUDA_ERROR_INVALID_VALUE));
        }
    }

    #[test]
    fn a_box_spans_from_its_first_to_its_last_byte() {
        let span = |side: &Side, extent| side.span(extent, side.distances(extent).unwrap());
        assert_eq!(span(&side(2, 1, 1, 64, 8), EXTENT), Some((512 + 64 + 2, 512 + 2 * 64 + 10, 512)));
        assert_eq!(span(&side(2, 1, 0, 64, 8), Extent { depth: 1, ..EXTENT }), Some((66, 138, 0)));
        assert_eq!(span(&side(0, 0, 0, 64, usize::MAX), EXTENT), None);
        assert_eq!(span(&side(0, 0, 0, 64, usize::MAX), Extent { depth: 1, ..EXTENT }), Some((0, 138, 0)));
        assert_eq!(span(&side(0, 0, usize::MAX, 64, 8), EXTENT), None);
    }
}
