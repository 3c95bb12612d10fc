//! The behaviour of the house, held from the outside: cases of `spec/`, tables of the rules' pages, tidiness,
//! real files.

mod pages;
mod spec;
mod tidy;
