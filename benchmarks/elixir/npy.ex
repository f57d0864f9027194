defmodule Benchmarks.Npy do
  @moduledoc """
  Arrays in numpy's `.npy` files, as `Nutkin.Tensor`s: of the types that the benchmarks have.
  """

  alias Nutkin.Tensor

  @types %{"<f8" => {:f, 64}, "<i4" => {:s, 32}}

  @doc "All arrays of a folder, by the name of their file."
  @spec read_folder(Path.t()) :: %{String.t() => Tensor.t()}
  def read_folder(folder) do
    for file <- Path.wildcard(Path.join(folder, "*.npy")), into: %{} do
      {Path.basename(file, ".npy"), file |> File.read!() |> decode()}
    end
  end

  defp decode(<<0x93, "NUMPY", 1, 0, size::little-16, header::binary-size(size), data::binary>>) do
    [_, type] = Regex.run(~r/'descr': '([^']*)'/, header)
    [_, shape] = Regex.run(~r/'shape': \(([^)]*)\)/, header)
    true = header =~ "'fortran_order': False"
    sizes = for size <- String.split(shape, [",", " "], trim: true), do: String.to_integer(size)
    Tensor.from_binary(data, Map.fetch!(@types, type), List.to_tuple(sizes))
  end

  @doc "Writes a tensor of the type f64."
  @spec write!(Path.t(), Tensor.t()) :: :ok
  def write!(file, %Tensor{type: {:f, 64}, shape: shape, data: data}) do
    sizes = shape |> Tuple.to_list() |> Enum.map_join(&"#{&1}, ")
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (#{sizes}), }"
    padding = String.duplicate(" ", 63 - rem(10 + byte_size(header), 64))
    header = header <> padding <> "\n"
    File.write!(file, [<<0x93, "NUMPY", 1, 0, byte_size(header)::little-16>>, header, data])
  end
end
