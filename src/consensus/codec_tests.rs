//! Rules of the file of the same name.
