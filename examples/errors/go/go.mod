module errors.example

go 1.15
