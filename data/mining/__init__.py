"""Mining: traces -> labelled, weighted examples, by named rules over tables."""
