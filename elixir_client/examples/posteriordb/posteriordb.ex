defmodule Posteriordb do
  @moduledoc """
  Posteriors of [posteriordb](https://github.com/stan-dev/posteriordb), as models of Nutkin. They have the names that they
  have there, and so have their data slots and parameters; elements are counted from 0 here.

      make posteriordb                               # samples all, and compares them with posteriordb's draws
      make posteriordb ONLY="arK-arK nes1972-nes"    # or some
  """

  alias Posteriordb.{ARK, BLR, Diamonds, Earnings, EightSchools, GARCH, GaussianProcess, HMM, Kidiq}
  alias Posteriordb.{Kilpisjarvi, LotkaVolterra, Mesquite, Mixture, NES}

  @doc """
  The models by name.
  """
  @spec models() :: %{String.t() => Nutkin.Model.t()}
  def models do
    %{
      "arK-arK" => ARK.ark(),
      "bball_drive_event_0-hmm_drive_0" => HMM.hmm_drive_0(),
      "diamonds-diamonds" => Diamonds.diamonds(),
      "earnings-log10earn_height" => Earnings.log10earn_height(),
      "earnings-logearn_height" => Earnings.logearn_height(),
      "earnings-logearn_height_male" => Earnings.logearn_height_male(),
      "earnings-logearn_interaction" => Earnings.logearn_interaction(),
      "earnings-logearn_logheight_male" => Earnings.logearn_logheight_male(),
      "eight_schools-eight_schools_noncentered" => EightSchools.eight_schools_noncentered(),
      "garch-garch11" => GARCH.garch11(),
      "gp_pois_regr-gp_pois_regr" => GaussianProcess.gp_pois_regr(),
      "hmm_example-hmm_example" => HMM.hmm_example(),
      "hudson_lynx_hare-lotka_volterra" => LotkaVolterra.lotka_volterra(),
      "kidiq-kidscore_interaction" => Kidiq.kidscore_interaction(),
      "kidiq-kidscore_momhs" => Kidiq.kidscore_momhs(),
      "kidiq-kidscore_momhsiq" => Kidiq.kidscore_momhsiq(),
      "kidiq-kidscore_momiq" => Kidiq.kidscore_momiq(),
      "kidiq_with_mom_work-kidscore_interaction_c" => Kidiq.kidscore_interaction_c(),
      "kidiq_with_mom_work-kidscore_interaction_z" => Kidiq.kidscore_interaction_z(),
      "kilpisjarvi_mod-kilpisjarvi" => Kilpisjarvi.kilpisjarvi(),
      "low_dim_gauss_mix-low_dim_gauss_mix" => Mixture.low_dim_gauss_mix(),
      "mesquite-logmesquite" => Mesquite.logmesquite(),
      "mesquite-logmesquite_logva" => Mesquite.logmesquite_logva(),
      "mesquite-logmesquite_logvas" => Mesquite.logmesquite_logvas(),
      "mesquite-logmesquite_logvolume" => Mesquite.logmesquite_logvolume(),
      "nes1972-nes" => NES.nes(),
      "nes1976-nes" => NES.nes(),
      "nes1980-nes" => NES.nes(),
      "nes1988-nes" => NES.nes(),
      "nes1992-nes" => NES.nes(),
      "nes1996-nes" => NES.nes(),
      "sblrc-blr" => BLR.blr()
    }
  end

  @doc """
  Options of `Nutkin.sample/2` that a model needs, besides its data.
  """
  @spec options(String.t()) :: keyword()
  def options("hudson_lynx_hare-lotka_volterra"), do: [init: LotkaVolterra.init()]
  def options(_name), do: []
end
