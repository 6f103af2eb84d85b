/**
 * The default output limit that a provider accepts. A budget that lowers the limit writes one, and most providers
 * refuse one above the model's own. The embedded price table has no such figure, so this file has those of models with
 * long answers, and a moderate limit for others. The catalog's `max_output_tokens` comes first. This does not bound
 * the cost: the limit that is written does.
 *
 * Sources: Anthropic, Models overview (platform.claude.com/docs/en/models; late 2026, and the releases of 4.6 to 4.8
 * for those); Google, Gemini API models (ai.google.dev/gemini-api/docs/models), of which Vertex takes one token less
 * than 65 536; for OpenAI, secondary sources about its model pages. For retired models (Claude 3 and 3.5, Gemini 1.5,
 *    GPT-3.5
 * and GPT-4, o1-preview) the lowest published figures.
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
  [/realtime/, 4096],
  [/gpt-4\.1/, 32_768],
  [/gpt-5(?!.*-chat)/, 128_000],
  [/(?:^|\/)o1-preview/, 32_768],
  [/(?:^|\/)o1-mini/, 65_536],
  [/(?:^|\/)o[134](?=$|-)/, 100_000],
]

/** The output limit for a caller who gives none, by the provider's model name. */
export const outputMaximum = (upstreamModel: string): number =>
  maxima.find(([names]) => names.test(upstreamModel))?.[1] ?? otherwise
