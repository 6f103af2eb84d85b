/**
 * The reader's language. Some browsers name one in a form that is none (`en-US@posix`), at which `Intl` throws, also in
 * the library of the charts, which asks `navigator` itself as it is loaded: so this module is the first of all.
 */
const usable = (name: string): boolean => {
  try {
    return Intl.getCanonicalLocales(name).length > 0
  } catch {
    // A `RangeError`, by which it says no.
    return false
  }
}

export const language = navigator.languages.find(usable) ?? 'en'

if (!usable(navigator.language)) Object.defineProperty(navigator, 'language', { value: language })
