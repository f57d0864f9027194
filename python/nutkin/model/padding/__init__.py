"""Padding: a model whose data grow becomes one for more rows than there are, of the same log density.

    padding = pad(model, data_specs, blob_specs, precision)   # for a room, such as 1024 rows
    padding.check(program, data_specs)                        # for so many rows as there are
    padding.data(data, data_specs)                            # what is in the slots of `padding.model`

The rows behind the last one repeat it, in the data and in every value that has such an axis. So they lie in each
support, have the derivatives of the last row, and change no maximum. What counts rows (terms of the log density, sums,
means, products with a vector of rows, loops) is written anew with a mask, in operations of the model language: what
comes out is a model, whose masks and lengths are data slots. What mixes rows in another way is refused.
"""

from nutkin.model.padding.pad import pad as pad
from nutkin.model.padding.padding import Padding as Padding
