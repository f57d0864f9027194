defmodule Posteriordb do
  @moduledoc """
  Posteriors of [posteriordb](https://github.com/stan-dev/posteriordb), as models of Nutkin. They have the names that they
  have there, and so have their data slots and parameters; elements are counted from 0 here.

      make posteriordb                               # samples all, and compares them with posteriordb's draws
      make posteriordb ONLY="arK-arK nes1972-nes"    # or some
  """

  alias Posteriordb.{ARK, BLR, Diamonds, Earnings, EightSchools, Kidiq, Kilpisjarvi, Mesquite, NES}

  @doc """
  The models by name.
  """
  @spec models() :: %{String.t() => Nutkin.Model.t()}
  def models do
    %{
      "arK-arK" => ARK.ark(),
      "diamonds-diamonds" => Diamonds.diamonds(),
      "earnings-log10earn_height" => Earnings.log10earn_height(),
      "earnings-logearn_height" => Earnings.logearn_height(),
      "earnings-logearn_height_male" => Earnings.logearn_height_male(),
      "earnings-logearn_interaction" => Earnings.logearn_interaction(),
      "earnings-logearn_logheight_male" => Earnings.logearn_logheight_male(),
      "eight_schools-eight_schools_noncentered" => EightSchools.eight_schools_noncentered(),
      "kidiq-kidscore_interaction" => Kidiq.kidscore_interaction(),
      "kidiq-kidscore_momhs" => Kidiq.kidscore_momhs(),
      "kidiq-kidscore_momhsiq" => Kidiq.kidscore_momhsiq(),
      "kidiq-kidscore_momiq" => Kidiq.kidscore_momiq(),
      "kidiq_with_mom_work-kidscore_interaction_c" => Kidiq.kidscore_interaction_c(),
      "kidiq_with_mom_work-kidscore_interaction_z" => Kidiq.kidscore_interaction_z(),
      "kilpisjarvi_mod-kilpisjarvi" => Kilpisjarvi.kilpisjarvi(),
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
end
