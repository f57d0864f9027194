defmodule Nutkin.Model.Language do
  @moduledoc """
  The language of models: what can be written inside `Nutkin.Model.model/1`.

  Statements add a term to the log density or name a value: `<~/2`, `data/2`, `observe/4`, `factor/2`, `deterministic/2`.
  Distributions and operations are functions, with the parameters of Stan and PyMC and the names and rules of Nx;
  `+ - * / ** == != < <= > >=` and the functions of Kernel are those of `Nutkin.Model.Operators`. Nodes are indexed as
  `Nutkin.Model.Node` tells.

  Wherever a node is expected, a number, a nested list, a `Nutkin.Tensor` or an `Nx.Tensor` does as well, and becomes a
  constant of the model. Mistakes raise `Nutkin.Error.InvalidModel`.

  ## Elixir decides before the model runs

  A block runs once, to write the model down; values are there only when the model is sampled. So **`case` and `cond`,
  `with` and the heads of functions cannot look at a node: they match the node itself, silently.** They are special forms
  of Elixir, which the language cannot replace. To choose by what a node will be, write

    * `select(x > 0, a, b)`, element by element, instead of `case` and `cond`; it may be nested
    * `if x > 0, do: a, else: b` for a scalar node: both sides are written down, and the model runs one of them
    * `logical_and(x > 0, y > 0)`, `logical_or/2`, `logical_not/1` instead of `and`, `or`, `not`
    * `x == y`, not `===`

  `unless`, `&&`, `||`, `!`, `and`, `or`, `not`, `===`, `!==` and `in` refuse nodes with a
  `Nutkin.Error.InvalidModel`. Between Elixir's own values all of these are what they always are: a block may be written
  according to an option with `if` and `case`.

  ## Idioms

    * Indices start at 0, as in Nx: groups that are numbered from 1 are `theta[group - 1]`. An index outside its axis is
      an error, but for those that depend on a parameter
    * A column of a captured list of rows is `Enum.map(rows, & &1.weight)`, that of a matrix node `x[[.., 1]]`
    * The sum of a list of nodes is `Enum.reduce(nodes, &+/2)`, or `sum(stack(nodes))`; `Enum.sum/1` knows only numbers,
      and raises an `ArithmeticError`
    * Nodes that are made in a loop join with `stack/1` and `concatenate/1`

  ## Functions

  Functions that write a part of a model bring the language in themselves:

      defmodule Priors do
        use Nutkin.Model.Language

        def scale(name), do: half_normal(1, name: name)
      end

  Where a module has a function of the same name as one here, Elixir refuses the call as ambiguous: name the module, as in
  `Nutkin.Model.Language.data(:y)` and `__MODULE__.data(:y)`, or leave functions out of the import,
  `use Nutkin.Model.Language, except: [data: 1]`.
  """

  alias Nutkin.Error.InvalidModel

  alias Nutkin.Model.{
    Builder,
    Combination,
    Control,
    Covariance,
    Custom,
    Distribution,
    Imputation,
    Node,
    Operation,
    Operators,
    Option,
    Traced
  }

  # Of loops in functions over Nx.
  @max_steps 1000

  @typedoc "A node, or what becomes a constant."
  @type value :: Node.t() | Nutkin.Tensor.source() | Nutkin.Blob.t()

  @type name :: atom() | String.t()

  @doc """
  Brings the language into a module or a block: this module's functions, and `Nutkin.Model.Operators` instead of Kernel's.

  Option: `:except`, functions of this module to leave out, such as `[data: 1]`.
  """
  defmacro __using__(opts) do
    opts = Keyword.validate!(opts, [:except])

    quote do
      import Kernel, except: unquote(Operators.kernel_names()), warn: false
      import Nutkin.Model.Operators, warn: false
      import Nutkin.Model.Language, unquote([warn: false] ++ opts)
    end
  end

  @doc """
  A free variable: `mu <~ normal(0, 5)` is to be sampled, under the name of the Elixir variable that it is bound to.

  The distribution takes these options:

    * `:shape` - the whole shape, event axes included, such as `{8}`; without it what the parameters broadcast to
    * `:transform` - `:identity`, `:log`, `:softplus`, `:logit`, `:interval` or `:stick_breaking`: how the sampler's
      unconstrained numbers become values. Every distribution has a fitting one by default
    * `:centered` - `false` samples the standardised variable z of `mu + sigma z`, which suits hierarchies with little
      data; `:auto` lets a pilot run decide, for each element and also for something between. For normal, student_t,
      cauchy, laplace, logistic and others with a location and a scale
    * `:name` - another name, as variables that are made in a loop need: `g <~ normal(mu, tau, name: "g_\#{i}")`
  """
  defmacro left <~ right do
    case left do
      {name, meta, context} when is_atom(name) and is_atom(context) and name != :_ ->
        variable = {name, Keyword.put(meta, :generated, true), context}

        quote do
          unquote(variable) = Nutkin.Model.Language.__free__(unquote(Atom.to_string(name)), unquote(right))
          unquote(variable)
        end

      other ->
        raise ArgumentError,
              "the left side of <~ is a variable, such as mu in mu <~ normal(0, 1), not #{Macro.to_string(other)}"
    end
  end

  @doc false
  @spec __free__(String.t(), Distribution.t() | Custom.t()) :: Node.t()
  def __free__(variable, %Custom{} = custom) do
    name = custom.opts |> Keyword.get(:name, variable) |> Builder.name!("custom(…, name: name)")
    node = __free__(name, Custom.flat(custom))
    density = Custom.log_density(custom, node, name, @max_steps)
    Builder.named("#{name}_density", %{"kind" => "factor", "value" => density.index})
    node
  end

  def __free__(variable, distribution) do
    hint = "what is computed is bound by =, as in #{variable} = exp(x)"
    distribution = distribution!(distribution, variable, hint)

    name =
      distribution.opts
      |> Keyword.get(:name, variable)
      |> Builder.name!("#{Distribution.label(distribution.family)}(…, name: name)")

    Builder.named(name, Distribution.free(distribution))
  end

  @doc """
  A data slot: a value that is given when the model is run. Another value of the same shape compiles nothing anew.

  Options, the first two of which are checked when data comes:

    * `:shape` - a tuple in which nil is a size that is left open
    * `:type` - the type of the tensor
    * `:grows` - a name for the first axis, such as `:rows`: its length may be another one each time, and a model is
      compiled for lengths up to the next of few sizes. Slots of one name have one length. What mixes the entries of
      such an axis, as `sort/2` does, is an error

  Lists of integers are tensors of the type s64, lists with a float in them f64, and data of another type compiles anew.
  With `type: :f64` both become f64, as a feed needs whose numbers are sometimes whole. Tensors keep their type, and must
  have the declared one.
  """
  @spec data(name(), keyword()) :: Node.t()
  def data(name, opts \\ []) do
    name = Builder.name!(name, "data(name)")
    kinds = [shape: :open_shape, type: :type, grows: :name]
    fields = Option.to_wire!(opts, kinds, "data slot #{name}")
    Builder.named(name, Map.put(fields, "kind", "data"))
  end

  @doc """
  An observed value: adds the log density of `value` under the distribution, element by element.

  Options, applied in this order:

    * `:weight` - a factor for each term
    * `:mask` - where it is 0, the term is left out
    * `:reduce` - `:sum` of the terms, by default, or `:mean`

  Numbers of a list that are nil are missing: they are sampled, as the variable `NAME_missing`, which is a vector of
  them in their order. The distribution is one on the real line, on the positive numbers or on (0, 1).
  """
  @spec observe(name(), Distribution.t() | Custom.t(), value(), keyword()) :: :ok
  def observe(name, distribution, value, opts \\ [])

  def observe(name, %Custom{} = custom, value, opts) do
    name = Builder.name!(name, "observe(name, distribution, value)")
    opts = Option.check_names!(opts, [:weight, :mask, :reduce], "observe #{name}")
    factor(name, Custom.observed(custom, value, name, opts, @max_steps))
  end

  def observe(name, distribution, value, opts) do
    name = Builder.name!(name, "observe(name, distribution, value)")
    hint = "the distribution comes first: observe(name, distribution, value)"
    fields = Distribution.observed(distribution!(distribution, name, hint))
    opts = Option.check_names!(opts, [:weight, :mask, :reduce], "observe #{name}")
    {references, settings} = Keyword.split(opts, [:weight, :mask])
    settings = Option.to_wire!(settings, [reduce: {:one_of, [:sum, :mean]}], "observe #{name}")
    value = if Imputation.missing?(value), do: Imputation.complete(name, distribution, value), else: value

    [value: value]
    |> Keyword.merge(references)
    |> Enum.reduce(Map.merge(fields, settings), fn {field, value}, fields ->
      Map.put(fields, "#{field}", Builder.reference(value, "the #{field} of #{name}"))
    end)
    |> then(&Builder.named(name, &1))

    :ok
  end

  @doc """
  Adds the sum of a value to the log density: of a value of the model, or of what a function over Nx gives.

      factor(:likelihood, fn p, data -> MyModel.log_likelihood(p.slope, data.x, data.y) end)

  A function of one parameter gets a map of all variables that the model has so far, by their names as atoms; one of two
  parameters the data slots besides. See `nx/3`, which takes other arguments.
  """
  @spec factor(name(), value() | (map() -> term()) | (map(), map() -> term())) :: :ok
  def factor(name, value)

  def factor(name, fun) when is_function(fun) do
    name = Builder.name!(name, "factor(name, fun)")

    arguments =
      case :erlang.fun_info(fun)[:arity] do
        1 ->
          [Traced.named("rv")]

        2 ->
          [Traced.named("rv"), Traced.named("data")]

        _ ->
          raise InvalidModel,
            message: "the function of #{name} takes the variables, or these and the data",
            node: name
      end

    [value] = Traced.write(fun, arguments, name, 1, @max_steps)
    Builder.named(name, %{"kind" => "factor", "value" => value.index})
    :ok
  end

  def factor(name, value) do
    name = Builder.name!(name, "factor(name, value)")
    Builder.named(name, %{"kind" => "factor", "value" => Builder.reference(value, "the value of #{name}")})
    :ok
  end

  @doc """
  What a function over Nx gives for a list of arguments: values of the model, alone or in tuples and maps.

      mu = nx(fn p, x -> Nx.add(p.a, Nx.multiply(p.b, Nx.sin(x))) end, [%{a: a, b: b}, x])

  The function is traced by Nx when the model is run with data, since it needs shapes; it may be a `defn`, such as
  `&MyModel.curve/2`. It becomes operations of the model, with the gradient of these, see `Nutkin.Nx`.

  Options:

    * `:results` - the number of tensors that it gives, if they are several; then they come as a tuple
    * `:max_steps` - the most steps of a `while` whose number of steps depends on what is computed, 1000 by default. After
      these its values are NaN
    * `:name` - what errors call the function
  """
  @spec nx(function(), [term()], keyword()) :: Node.t() | tuple()
  def nx(fun, arguments, opts \\ [])

  def nx(fun, arguments, opts) when is_function(fun) and is_list(arguments) do
    opts = Option.to_wire!(opts, [results: :count, max_steps: :count, name: :name], "nx")
    count = Map.get(opts, "results", 1)
    nodes = Traced.write(fun, arguments, opts["name"] || "nx", count, Map.get(opts, "max_steps", @max_steps))
    if opts["results"], do: List.to_tuple(nodes), else: hd(nodes)
  end

  def nx(fun, arguments, _opts) do
    raise InvalidModel,
      message: "nx takes a function over Nx and the list of its arguments",
      expected: "nx(fn x -> … end, [x])",
      found: "nx(#{inspect(fun)}, #{inspect(arguments, limit: 5)})"
  end

  @doc """
  Names a value that is to come with the draws. Returns it as a node.
  """
  @spec deterministic(name(), value()) :: Node.t()
  def deterministic(name, value) do
    name = Builder.name!(name, "deterministic(name, value)")
    node = Builder.node(value, "the value of #{name}")
    Builder.named(name, %{"kind" => "deterministic", "value" => node.index})
    node
  end

  @doc """
  A constant, written out: `tensor([1, 2]) * 2` is a node, `[1, 2] * 2` an error of Elixir.
  """
  @spec tensor(value()) :: Node.t()
  def tensor(value), do: Builder.node(value, "the argument of tensor")

  @doc """
  A loop over the first axis of `xs`, as `Enum.map_reduce/3`: `fun.(x, acc)` gives `{y, acc}`. Returns `{ys, acc}`.

  `fun` runs once, to be written down; the loop runs in the compiled model, and is differentiated. `acc` and `y` are
  values, or tuples and maps of values; `xs` may be a tuple or a map of tensors of equal first sizes, or a range. Where `y`
  is nil nothing is collected. `acc` keeps its shape; nodes from outside can be used in `fun`, statements cannot.

  Option: `:reverse`, from the last entry to the first.

      iex> import Nutkin.Model
      iex> model do
      ...>   y = data(:y)
      ...>   rho <~ uniform(-1, 1)
      ...>   {means, _last} = scan(y, 0.0, fn y, mean -> {mean, rho * y} end)
      ...>   observe(:obs, normal(means, 1), y)
      ...> end
      #Nutkin.Model<
        y = data(:y)
        rho <~ uniform(-1, 1)
        {v7, v6} = scan(y, 0.0, fn a1, a0 ->
          {a0, multiply(rho, a1)}
        end)
        observe(:obs, normal(v7, 1), y)
      >

  """
  @spec scan(values, acc, (values, acc -> {ys, acc}), keyword()) :: {ys, acc}
        when values: term(), acc: term(), ys: term()
  def scan(xs, acc, fun, opts \\ []), do: Control.scan(xs, acc, fun, opts)

  @doc """
  A loop while `condition.(acc)` is not 0: `fun.(acc)` gives the next `acc`. Returns the last one.

  The number of steps may depend on parameters; the loop is differentiated all the same. `acc` is a value, or a tuple or
  map of values, and keeps its shape. Option: `:max_steps`, which is required: floats are NaN where the condition still
  holds after so many, and the gradient needs memory for so many values of `acc`.

      {root, _} = while({x, 0}, fn {root, _} -> abs(root * root - x) > 1.0e-12 end,
        fn {root, n} -> {(root + x / root) / 2, n + 1} end, max_steps: 50)

  """
  @spec while(acc, (acc -> value()), (acc -> acc), keyword()) :: acc when acc: term()
  def while(acc, condition, fun, opts), do: Control.while(acc, condition, fun, opts)

  @doc """
  The solution of a differential equation, d state / dt = `fun.(t, state)`, from `state` at `start`, at increasing `times`.

  `state` is a value, or a tuple or map of values of any shape, `times` a vector {n}: the result has the form of `state`,
  its values have the shape {n, …}. Adaptive steps, differentiated with respect to everything that `fun` uses.

  Options: `:method`, one of `:tsit5` (by default), `:dopri5`, `:dopri8`, and for stiff equations `:kvaerno3`,
  `:kvaerno5`; `:rtol`, 1.0e-6 by default, and `:atol`, 1.0e-9; `:max_steps`, 4096, after which the solution is NaN.

      populations = ode(%{hare: h0, lynx: l0}, 0, times, fn _t, z ->
        %{hare: (a - b * z.lynx) * z.hare, lynx: (d * z.hare - c) * z.lynx}
      end)
  """
  @spec ode(state, value(), value(), (value(), state -> state), keyword()) :: state when state: term()
  def ode(state, start, times, fun, opts \\ []), do: Control.ode(state, start, times, fun, opts)

  for {name, of, what} <- [
        {:log_prob, "density", "log density, or log probability of a count,"},
        {:log_cdf, "cdf", "logarithm of the probability of values up to x"},
        {:log_sf, "sf", "logarithm of the probability of values above x"}
      ] do
    @doc """
    The #{what} under a distribution, element by element: a value, not a term of the model. Both sides broadcast.
    """
    @spec unquote(name)(Distribution.t(), value()) :: Node.t()
    def unquote(name)(distribution, x) do
      what = unquote("the argument of #{name}")

      distribution!(distribution, what, unquote("it comes first: #{name}(distribution, x)"))
      |> Distribution.observed()
      |> Map.merge(%{"kind" => "log_prob", "value" => Builder.reference(x, what), "of" => unquote(of)})
      |> Builder.value()
    end
  end

  for {name, parameters, support, note} <- Distribution.table() do
    args = Enum.map(parameters, &Macro.var(&1, __MODULE__))
    named = Enum.map_join(parameters, ", ", &"#{&1}: …")
    value = quote(do: value())
    # The only parameter may be given by name in its place.
    types =
      if length(parameters) == 1,
        do: [quote(do: value() | keyword())],
        else: Enum.map(parameters, fn _ -> value end)

    @doc """
    The distribution #{name}(#{Enum.join(parameters, ", ")}). Its values are #{support}. #{note}

    Also `#{name}(#{named})`; the options are those of `<~/2`.
    """
    @spec unquote(name)(unquote_splicing(types)) :: Distribution.t()
    def unquote(name)(unquote_splicing(args)) do
      Distribution.new(unquote(name), unquote(parameters), [unquote_splicing(args)])
    end

    @doc "As `#{name}/#{length(parameters)}`, with the options of `<~/2`."
    @spec unquote(name)(unquote_splicing(Enum.map(parameters, fn _ -> value end)), keyword()) ::
            Distribution.t()
    def unquote(name)(unquote_splicing(args), opts) do
      Distribution.new(unquote(name), unquote(parameters), [unquote_splicing(args), opts])
    end

    if length(parameters) > 1 do
      @doc "As `#{name}/#{length(parameters)}`, with the parameters by name (#{named}), and the options of `<~/2`."
      @spec unquote(name)(keyword()) :: Distribution.t()
      def unquote(name)(named) do
        Distribution.new(unquote(name), unquote(parameters), [named])
      end
    end
  end

  @doc """
  A distribution of one's own: its log density is a function over Nx, of the value and of parameters, which are values of
  the model, alone or in tuples and maps.

      laplace = fn x, p -> Nx.subtract(Nx.negate(Nx.divide(Nx.abs(Nx.subtract(x, p.mu)), p.b)), Nx.log(Nx.multiply(2, p.b))) end
      x <~ custom(laplace, %{mu: mu, b: b})
      observe(:y, custom(laplace, %{mu: x, b: 1.0}), data(:y))

  What the function gives is summed. Options of a free variable: `:support`, which is `:real`, `:positive` or
  `:unit_interval`, and `:shape`, `:transform`, `:name` as for `<~/2`; its density is the factor `NAME_density`. There are no
  random draws of such a distribution, so predictions need the draws of the variable and leave the observation out. See
  `nx/3`.
  """
  @spec custom((term(), term() -> term()), term(), keyword()) :: Custom.t()
  def custom(fun, parameters, opts \\ []), do: Custom.new(fun, parameters, opts)

  @doc """
  A mixture: with probability `weights[i]` a value of component i.

  The components are a list of distributions, all of counts or all continuous; or one distribution whose parameters have
  the component axis as their last (scalars count for all). `weights` has the shape {…, k}; its rows sum to 1.

      mixture([0.3, 0.7], [normal(0, 1), student_t(4, 2, 1)])
      mixture(w, normal(mu, sigma))        # w, mu: {3}, sigma: {} or {3}

  A mixture can be a free variable where the components have one support. Options: those of `<~/2`.
  """
  @spec mixture(value(), Distribution.t() | [Distribution.t(), ...], keyword()) :: Distribution.t()
  def mixture(weights, components, opts \\ []),
    do: Combination.new(:mixture, [weights: weights], components, opts)

  @doc """
  The distribution given that the value is from `:lower` to `:upper`, one or both: `truncated(normal(0, 1), lower: 0)`.

  For every distribution of a number but `flat` and `half_flat`, and those made of others. Further options: those of `<~/2`.
  """
  @spec truncated(Distribution.t(), keyword()) :: Distribution.t()
  def truncated(distribution, opts), do: Combination.limited(:truncated, distribution, opts)

  @doc """
  The distribution of a value that is only seen between `:lower` and `:upper`, one or both: a value that equals a limit
  stands for all beyond it. The limits broadcast to the values; those of a value that is not censored may be infinite.

      observe(:time, censored(weibull(alpha, sigma), upper: followed_for), time)
  """
  @spec censored(Distribution.t(), keyword()) :: Distribution.t()
  def censored(distribution, opts), do: Combination.limited(:censored, distribution, opts)

  @doc """
  The distribution of values of which only the ends of an interval are known: what is observed has the shape {…, 2}.

  The first end may be minus, the second plus infinity. Of counts both ends belong to the interval.
  """
  @spec interval_censored(Distribution.t()) :: Distribution.t()
  def interval_censored(distribution), do: Combination.new(:interval_censored, [], distribution, [])

  @doc """
  A distribution of counts with more zeros: 0 with probability `p`, else a value of the distribution, which may be 0 too.
  """
  @spec zero_inflated(Distribution.t(), value()) :: Distribution.t()
  def zero_inflated(distribution, p), do: Combination.new(:zero_inflated, [p: p], distribution, [])

  @doc """
  0 with probability `p`, else a value of the distribution that is not 0: of counts, or of positive numbers.
  """
  @spec hurdle(Distribution.t(), value()) :: Distribution.t()
  def hurdle(distribution, p), do: Combination.new(:hurdle, [p: p], distribution, [])

  for {name, parameters, formula} <- [
        {:gp_exp_quad_cov, [:length_scale], "sigma² exp(-d² / (2 length_scale²))"},
        {:gp_exponential_cov, [:length_scale], "sigma² exp(-d / length_scale)"},
        {:gp_matern32_cov, [:length_scale], "sigma² (1 + r) exp(-r) with r = sqrt(3) d / length_scale"},
        {:gp_matern52_cov, [:length_scale],
         "sigma² (1 + r + r² / 3) exp(-r) with r = sqrt(5) d / length_scale"},
        {:gp_rational_quadratic_cov, [:length_scale, :alpha],
         "sigma² (1 + d² / (2 alpha length_scale²))^(-alpha)"},
        {:gp_periodic_cov, [:length_scale, :period],
         "sigma² exp(-2 sin²(pi d / period) / length_scale²), summed over coordinates"}
      ] do
    variables = Enum.map(parameters, &Macro.var(&1, __MODULE__))

    @doc """
    The covariances of a Gaussian process between points: #{formula}, d being their distance.

    `x` is a vector {n}, or for points in a plane or a space the tuple of their coordinates, `{longitude, latitude}`. Gives
    {n, n}, for `mv_normal` or `cholesky`. Options: `:to`, other points {m}, which gives {n, m}; `:jitter`, a number that is
    added to the diagonal, as factorizations need it. As Stan's `#{name}`.
    """
    @spec unquote(name)(
            value() | tuple(),
            value(),
            unquote_splicing(Enum.map(parameters, fn _ -> quote(do: value()) end)),
            keyword()
          ) ::
            Node.t()
    def unquote(name)(x, sigma, unquote_splicing(variables), opts \\ []) do
      Covariance.matrix(
        unquote("#{name}"),
        x,
        sigma,
        Covariance.function(unquote(name), unquote(variables)),
        opts
      )
    end
  end

  for {name, values, settings, options, doc} <- Operation.table(),
      name not in [:slice | Keyword.keys(Operators.kernel_names())] do
    values = Enum.map(values, &Macro.var(&1, __MODULE__))
    given = Enum.map(settings, fn {setting, _kind} -> {setting, Macro.var(setting, __MODULE__)} end)
    variables = Keyword.values(given)
    opts = if options == [], do: [], else: [quote(do: opts \\ [])]
    all = if options == [], do: given, else: quote(do: unquote(given) ++ opts)
    types = Enum.map(values, fn _ -> quote(do: value()) end) ++ Enum.map(given, fn _ -> quote(do: term()) end)

    results = Operation.results("#{name}")
    several = if results != [], do: "`{#{Enum.join(results, ", ")}} = #{name}(...)`: "

    result =
      if results == [],
        do: quote(do: Node.t()),
        else: {:{}, [], Enum.map(results, fn _ -> quote(do: Node.t()) end)}

    @doc """
    #{several}#{doc}#{if options != [], do: " Options: #{Enum.map_join(options, ", ", fn {option, _} -> "`:#{option}`" end)}."}
    """
    @spec unquote(name)(unquote_splicing(types)) :: unquote(result)
    if options != [], do: @spec(unquote(name)(unquote_splicing(types), keyword()) :: unquote(result))

    def unquote(name)(unquote_splicing(values ++ variables ++ opts)) do
      call(
        unquote(Atom.to_string(name)),
        [unquote_splicing(values)],
        unquote(all),
        unquote(Macro.escape(settings ++ options)),
        unquote(length(results))
      )
    end
  end

  {:slice, [:x], settings, options, doc} = List.keyfind(Operation.table(), :slice, 0)
  @slice settings ++ options

  @doc """
  #{doc} Starts that are nodes are as the indices of `take/3`. Option: `:strides`.

      iex> import Nutkin.Model
      iex> model do
      ...>   x = data(:x)
      ...>   first = data(:first, shape: {}, type: :s64)
      ...>   {q, _r} = qr(slice(x, [first, 0], [3, 2]))
      ...>   deterministic(:q, q)
      ...> end
      #Nutkin.Model<
        x = data(:x)
        first = data(:first, shape: {}, type: :s64)
        {v5, v6} = qr(slice(x, [first, 0], [3, 2]))
        deterministic(:q, v5)
      >

  """
  @spec slice(value(), [integer() | Node.t()], [pos_integer()], keyword()) :: Node.t()
  def slice(x, starts, lengths, opts \\ []) do
    if is_list(starts) and Enum.any?(starts, &is_struct(&1, Node)) do
      call("dynamic_slice", [x | starts], [lengths: lengths] ++ opts, @slice)
    else
      call("slice", [x], [starts: starts, lengths: lengths] ++ opts, @slice)
    end
  end

  @doc """
  x with another tensor in place of the part that begins at `starts`, a list of numbers or nodes, as `Nx.put_slice/3`.
  """
  @spec put_slice(value(), [value()], value()) :: Node.t()
  def put_slice(x, starts, update) when is_list(starts),
    do: call("put_slice", [x | starts] ++ [update], [], [])

  def put_slice(_x, other, _update) do
    raise InvalidModel,
      message: "the starts of put_slice are no list",
      expected: "a list, such as [0, i]",
      found: inspect(other, limit: 5)
  end

  for {name, doc} <- [concatenate: "Joins tensors along an axis.", stack: "Joins tensors along a new axis."] do
    @doc """
    #{doc} Option: `:axis`, 0 by default.
    """
    @spec unquote(name)([value(), ...], keyword()) :: Node.t()
    def unquote(name)(values, opts \\ [])

    def unquote(name)([_ | _] = values, opts) do
      call(unquote(Atom.to_string(name)), values, opts, axis: :axis)
    end

    def unquote(name)(other, _opts) do
      raise InvalidModel,
        message: "the argument of #{unquote(name)} is no list of values",
        expected: "a list, such as [x, y]",
        found: inspect(other, limit: 5)
    end
  end

  @doc """
  The product of matrices and vectors: over the last axis of `left` and the last but one of `right`, or its only one.
  """
  @spec dot(value(), value()) :: Node.t()
  def dot(left, right), do: call("dot", [left, right], [], [])

  @doc """
  The sum of products over axes of each side, as `Nx.dot/4`.
  """
  @spec dot(value(), [integer()], value(), [integer()]) :: Node.t()
  def dot(left, contract_left, right, contract_right),
    do: dot(left, contract_left, [], right, contract_right, [])

  @doc """
  The sum of products over axes of each side, for each entry of the batch axes, as `Nx.dot/6`.
  """
  @spec dot(value(), [integer()], [integer()], value(), [integer()], [integer()]) :: Node.t()
  def dot(left, contract_left, batch_left, right, contract_right, batch_right) do
    opts = [contract_a: contract_left, batch_a: batch_left, contract_b: contract_right, batch_b: batch_right]
    call("dot", [left, right], opts, contract_a: :axes, batch_a: :axes, contract_b: :axes, batch_b: :axes)
  end

  defp call(op, args, opts, kinds, results \\ 0)
  defp call(op, args, opts, kinds, 0), do: Builder.call(op, args, Option.to_wire!(opts, kinds, op))

  defp call(op, args, opts, kinds, count) do
    op |> Builder.call(args, Option.to_wire!(opts, kinds, op), count) |> List.to_tuple()
  end

  # `hint` is for a node in the place of the distribution.
  defp distribution!(%Distribution{} = distribution, _name, _hint), do: distribution

  defp distribution!(other, name, hint) do
    raise InvalidModel,
      message: "#{name} has no distribution",
      node: name,
      expected: "a distribution, such as normal(0, 1)",
      found: inspect(other, limit: 5),
      hint: if(is_struct(other, Node), do: hint)
  end
end
