/**
 * What a response repeats of its request: the values of the request, and the documented defaults of those that it left
 * out (OpenAI's API reference, The response object; Open Responses specification, ResponseResource). Clients require
 * every one of these members.
 */
import { isGiven, isObject, type JsonObject, objectsOf } from '../reading/json-value.ts'

/** Members whose value is repeated as it is, with their defaults. */
const defaults = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  temperature: 1,
  tool_choice: 'auto',
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
} as const

/** Nothing is stored or run in the background: the gateway cannot give such a response again. */
const fixed = { background: false, frequency_penalty: 0, presence_penalty: 0, store: false }

export function settingsEcho(request: Readonly<JsonObject>): JsonObject {
  const echo: JsonObject = { ...fixed }
  for (const [name, value] of Object.entries(defaults)) echo[name] = isGiven(request[name]) ? request[name] : value
  const reasoning = isObject(request.reasoning) ? request.reasoning : {}
  return {
    ...echo,
    // The tier that was asked for is the one that is paid, unless the provider reports another.
    service_tier: isGiven(request.service_tier) && request.service_tier !== 'auto' ? request.service_tier : 'default',
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? reasoning.generate_summary ?? null },
    text: textOf(isObject(request.text) ? request.text : {}),
    tools: objectsOf(request.tools).map(toolOf),
  }
}

function textOf({ format, ...others }: JsonObject): JsonObject {
  if (!isObject(format)) return { format: { type: 'text' }, ...others }
  if (format.type !== 'json_schema') return { format, ...others }
  return { format: { ...format, description: format.description ?? null, strict: format.strict ?? false }, ...others }
}

/** A function that does not ask for it is not strict here: only providers of this language make it so unasked. */
function toolOf(tool: JsonObject): JsonObject {
  if (tool.type !== 'function') return tool
  const { description, parameters, strict } = tool
  return { ...tool, description: description ?? null, parameters: parameters ?? null, strict: strict ?? false }
}
