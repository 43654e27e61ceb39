/** Words for kinds of eggs. */

const KINDS = {
  lispy: "LisPy cartridge",
  game: "game cartridge",
  phylogeny: "record of descent",
  seeds: "list of agents",
};

export const kindOf = (kind) => KINDS[kind] ?? kind;
