/** The members that every response has, by the schema ResponseResource of the Open Responses specification. */
import { z } from 'zod'

const nullable = {
  string: z.string().nullable(),
  whole: z.number().int().nullable(),
  object: z.looseObject({}).nullable(),
}

const tool = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('function'),
    name: z.string(),
    description: nullable.string,
    parameters: nullable.object,
    strict: z.boolean().nullable(),
  }),
  z.looseObject({ type: z.enum(['web_search', 'namespace', 'custom']) }),
])

const format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string(),
    description: nullable.string,
    schema: z.looseObject({}),
    strict: z.boolean(),
  }),
])

export const responseForm = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number().int(),
  completed_at: nullable.whole,
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: nullable.string,
  instructions: nullable.string,
  output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(tool),
  tool_choice: z.union([z.enum(['auto', 'none', 'required']), z.looseObject({ type: z.string() })]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.looseObject({ format }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.number().int(),
  temperature: z.number(),
  reasoning: z.object({ effort: nullable.string, summary: nullable.string }).nullable(),
  user: nullable.string,
  usage: z
    .looseObject({
      input_tokens: z.number().int(),
      output_tokens: z.number().int(),
      total_tokens: z.number().int(),
      input_tokens_details: z.looseObject({ cached_tokens: z.number().int() }),
      output_tokens_details: z.looseObject({ reasoning_tokens: z.number().int() }),
    })
    .nullable(),
  max_output_tokens: nullable.whole,
  max_tool_calls: nullable.whole,
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: nullable.string,
  prompt_cache_key: nullable.string,
})

/** A request that sets everything that a response repeats, and what the response says of it. */
export const settingsRequest = {
  instructions: 'Be brief',
  max_output_tokens: 64,
  metadata: { team: 'a' },
  parallel_tool_calls: false,
  prompt_cache_key: 'k',
  safety_identifier: 's',
  temperature: 0.5,
  tool_choice: { type: 'function', name: 'look' },
  top_p: 0.9,
  user: 'u',
  reasoning: { effort: 'low', summary: 'auto' },
  text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' } }, verbosity: 'low' },
  tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
}

export const settingsRepeated = {
  ...settingsRequest,
  text: {
    format: { type: 'json_schema', name: 'n', description: null, schema: { type: 'object' }, strict: false },
    verbosity: 'low',
  },
  tools: [{ type: 'function', name: 'look', description: null, parameters: { type: 'object' }, strict: false }],
  store: false,
  background: false,
}
