/** A picture file made ready to be sent: opened, made smaller where it is large, and without what a camera wrote into it. */

const LONGEST_SIDE = 1568; // pixels; models see no more, and larger pictures cost more
const MOST_BYTES = 1_000_000;
const QUALITIES = [0.88, 0.75, 0.6];
const SMALLER = 0.7;
const NAMES = /\.(png|jpe?g|gif|webp|avif|heic|bmp|tiff?|svg)$/i;

/** True for a file that is a picture by its type or name. */
export const isPicture = ({ type, name }) => type.startsWith("image/") || NAMES.test(name);

/**
 * `{type, data, name, bytes}` of a picture file, `data` in base64; null when this browser cannot open it. It is drawn
 * anew: so the place where a photograph was taken stays here.
 */
export async function readPicture(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch (found) {
    if (found instanceof DOMException) return null;
    throw found;
  }
  const clear = !/jpe?g/.test(file.type);
  const longest = Math.max(bitmap.width, bitmap.height);
  let scale = Math.min(1, LONGEST_SIDE / longest);
  let blob = clear ? await drawn(bitmap, scale, "image/png") : null;
  while (!blob || blob.size > MOST_BYTES) {
    for (const quality of QUALITIES) {
      blob = await drawn(bitmap, scale, "image/jpeg", quality);
      if (blob.size <= MOST_BYTES) break;
    }
    scale *= SMALLER;
  }
  bitmap.close();
  const url = await asUrl(blob);
  return { type: blob.type, data: url.slice(url.indexOf(",") + 1), name: file.name.slice(0, 120), bytes: blob.size };
}

/** The address of a picture for an `<img>`. */
export const urlOf = ({ type, data }) => `data:${type};base64,${data}`;

function drawn(bitmap, scale, type, quality) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  if (type === "image/jpeg") {
    context.fillStyle = "white"; // what is clear would become black
    context.fillRect(0, 0, canvas.width, canvas.height);
  }
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, type, quality));
}

function asUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
