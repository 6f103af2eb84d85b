/**
 * The limit of the output that a provider takes from a caller who gave none. A budget that lowers the limit writes one,
 * and one above the model's own is refused by most providers. The embedded price table has no such figure, so those of
 * models that answer much are held here, by their makers' published lists (OpenAI, Anthropic and Google, late 2025); for
 * others a limit that models of today take. The catalog's `max_output_tokens` goes before both. It bounds no cost: what is
 * paid is bounded by what is written.
 */

const otherwise = 16_384

const maxima: readonly (readonly [RegExp, number])[] = [
  [/claude-3-(?:opus|sonnet|haiku)/, 4096],
  [/claude-3-5/, 8192],
  [/claude-opus-4(?:-[01])?(?=$|@|-\d{8}|-latest|-v\d)/, 32_000],
  [/claude-(?:3-7|(?:opus|sonnet|haiku)-\d)/, 64_000],
  [/gemini-(?:1\.5|2\.0)/, 8192],
  [/gemini-(?:2\.5|[3-9])/, 65_535],
  [/gpt-(?:3\.5|4(?=$|-turbo|-\d{4}|-32k))/, 4096],
  [/gpt-4\.1/, 32_768],
  [/gpt-5(?!.*-chat)/, 128_000],
  [/(?:^|\/)o[134](?=$|-)/, 65_536],
]

/** Tokens of output that a model is asked for at most where its caller says nothing, by the provider's name of it. */
export const outputMaximum = (upstreamModel: string): number =>
  maxima.find(([names]) => names.test(upstreamModel))?.[1] ?? otherwise
