/**
 * The limit of the output that a provider takes from a caller who gave none. A budget that lowers the limit writes one,
 * and one above the model's own is refused by most providers. The embedded price table has no such figure, so those of
 * models that answer much are held here; for others a limit that models of today take. The catalog's `max_output_tokens`
 * goes before both. It bounds no cost: what is paid is bounded by what is written.
 *
 * Sources: Anthropic, Models overview (platform.claude.com/docs/en/models; late 2026, and the releases of 4.6 to 4.8 for
 * those); Google, Gemini API models (ai.google.dev/gemini-api/docs/models), of which Vertex takes one token less than
 * 65 536; OpenAI, what others say of its models' pages, which were not at hand. Of retired models (Claude 3 and 3.5,
 * Gemini 1.5, GPT-3.5 and GPT-4, o1-preview) no list was at hand either: theirs are the lowest ever told of them.
 */

const otherwise = 16_384

const maxima: readonly (readonly [RegExp, number])[] = [
  [/claude-3-(?:opus|sonnet|haiku)/, 4096],
  [/claude-3-5/, 8192],
  [/claude-opus-4(?:-[01])?(?=$|@|-\d{8}|-latest|-v\d)/, 32_000],
  [/claude-(?:(?:opus|sonnet)-(?:4-[6-9]|[5-9])|fable-\d)(?!\d)/, 128_000],
  [/claude-(?:3-7|(?:opus|sonnet|haiku)-\d)/, 64_000],
  [/gemini-(?:1\.5|2\.0)/, 8192],
  [/gemini-(?:2\.5|[3-9])/, 65_535],
  [/gpt-(?:3\.5|4(?=$|-turbo|-\d{4}|-32k))/, 4096],
  [/gpt-4o-2024-05-13/, 4096],
  [/gpt-4\.1/, 32_768],
  [/gpt-5(?!.*-chat)/, 128_000],
  [/(?:^|\/)o1-preview/, 32_768],
  [/(?:^|\/)o1-mini/, 65_536],
  [/(?:^|\/)o[134](?=$|-)/, 100_000],
]

/** Tokens of output that a model is asked for at most where its caller says nothing, by the provider's name of it. */
export const outputMaximum = (upstreamModel: string): number =>
  maxima.find(([names]) => names.test(upstreamModel))?.[1] ?? otherwise
