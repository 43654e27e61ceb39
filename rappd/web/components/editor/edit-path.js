/** The editor's address for an agent file of the brainstem, or of the twin `key`. */
export const editPath = (filename, key = "") =>
  `#/${["agents", "edit", filename, ...(key ? [key] : [])].map(encodeURIComponent).join("/")}`;
