const backslash = 0x5c

/** The index after the closing quote of the JSON string that begins at `start`; the text's end where there is none. */
export function endOfString(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    const found = text.indexOf('"', at)
    if (found < 0) return text.length
    let slashes = 0
    while (text.charCodeAt(found - 1 - slashes) === backslash) slashes += 1
    if (slashes % 2 === 0) return found + 1
    at = found + 1
  }
}
