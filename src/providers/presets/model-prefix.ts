/**
 * A model's name with the name of its provider before it: `groq/llama-3.3-70b-versatile`. It names the provider of that
 * name; where there is none, a provider of the preset of that name which is at the preset's own address. Any other name
 * with a slash (`meta-llama/Llama-3.3-70B`) is a model's own. A name counts only for providers that serve models which
 * the catalog does not list.
 *
 * Filters and policies read the name without the prefix, as they do for the same model asked for without it. The name
 * with the prefix is an alias, so that a denial of either holds.
 */
import { presetNamed } from './presets.ts'

/** What is read of a provider. */
export interface NamedProvider {
  readonly name: string
  readonly kind: string
  readonly baseUrl: string | null
}

/** The name before the first slash and the rest; null for a name without a prefix. */
function splitName(model: string): { prefix: string; rest: string } | null {
  const slash = model.indexOf('/')
  if (slash <= 0 || slash === model.length - 1) return null
  return { prefix: model.slice(0, slash), rest: model.slice(slash + 1) }
}

/** The providers that a name's prefix names, in their order, and the name without it; null if it names none. */
export function namedProviders<Some extends NamedProvider>(
  model: string,
  serving: readonly Some[],
): { providers: readonly Some[]; model: string } | null {
  const split = splitName(model)
  if (split === null) return null
  const named = serving.filter(({ name }) => name === split.prefix)
  if (named.length > 0) return { providers: named, model: split.rest }
  const kind = presetNamed(split.prefix)?.kind.kind
  const ofPreset = kind === undefined ? [] : serving.filter((each) => each.kind === kind && each.baseUrl === null)
  return ofPreset.length === 0 ? null : { providers: ofPreset, model: split.rest }
}

/**
 * The names that are left when presets' names are taken off the beginning of a model's: services that resell models
 * (OpenRouter, or another gateway) know `openai/gpt-4o` as `gpt-4o`, so a denial of that one must hold.
 */
export function namesBelowPresets(model: string): readonly string[] {
  const split = splitName(model)
  if (split === null || presetNamed(split.prefix) === undefined) return []
  return [split.rest, ...namesBelowPresets(split.rest)]
}
