//! Copies of rectangles and boxes.
