/** What OpenAI takes as chat completions and as responses; `request-forms.ts` has the other providers' forms. */
import { z } from 'zod'
import { callId, object, toolName, words } from './request-forms.ts'
import { thought } from './task.ts'

const parsed = (text: string): unknown => JSON.parse(text)
const jsonText = z.string().transform((text, context) => {
  try {
    return parsed(text)
  } catch {
    context.addIssue('is no JSON')
    return z.NEVER
  }
})

const chatText = z.strictObject({ type: z.literal('text'), text: words, cache_control: object.optional() })
const chatContent = z.union([z.string(), z.array(chatText).min(1)])
const chatCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.strictObject({ name: toolName, arguments: jsonText }),
})
export const chat = z.strictObject({
  model: words,
  messages: z
    .array(
      z.discriminatedUnion('role', [
        z.strictObject({ role: z.enum(['system', 'developer', 'user']), content: chatContent }),
        z.strictObject({
          role: z.literal('assistant'),
          content: chatContent.nullish(),
          reasoning_content: z.literal(thought.thinking).optional(),
          tool_calls: z.array(chatCall).min(1).optional(),
        }),
        z.strictObject({ role: z.literal('tool'), tool_call_id: z.string().min(1), content: chatContent }),
      ]),
    )
    .min(1),
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.literal(true) }),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({
          name: toolName,
          description: z.string().optional(),
          parameters: object.optional(),
          strict: z.boolean().nullish(),
        }),
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z.enum(['auto', 'none', 'required']).optional(),
  parallel_tool_calls: z.boolean().optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
  verbosity: z.enum(['low', 'medium', 'high']).optional(),
  prompt_cache_key: z.string().optional(),
  safety_identifier: z.string().max(64).optional(),
  user: z.string().optional(),
  store: z.boolean().optional(),
  metadata: z.record(z.string(), z.string().max(512)).optional(),
})

const inputText = z.strictObject({ type: z.enum(['input_text', 'output_text']), text: z.string() }).or(
  z.strictObject({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: z.array(z.unknown()),
    logprobs: z.array(z.unknown()).optional(),
  }),
)
const itemOf = { id: z.string().optional(), status: z.string().optional() }
const responsesFunction = z.strictObject({
  type: z.literal('function'),
  name: toolName,
  description: z.string().nullish(),
  parameters: object,
  strict: z.boolean().nullish(),
})
const responsesTool = z.discriminatedUnion('type', [
  responsesFunction,
  z.strictObject({
    type: z.literal('custom'),
    name: toolName,
    description: z.string().optional(),
    format: object.optional(),
  }),
  z.looseObject({ type: z.literal('web_search') }),
])
const namespaceTool = z.strictObject({
  type: z.literal('namespace'),
  name: toolName,
  description: z.string(),
  tools: z.array(responsesTool).min(1),
})
const anyResponsesTool = z.union([responsesTool, namespaceTool])
export const responses = z.strictObject({
  model: words,
  instructions: z.string().nullish(),
  input: z
    .array(
      z.union([
        z.strictObject({
          ...itemOf,
          type: z.literal('message').optional(),
          role: z.enum(['user', 'assistant', 'system', 'developer']),
          content: z.union([z.string(), z.array(inputText).min(1)]),
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('function_call'),
          call_id: callId,
          name: toolName,
          namespace: z.string().optional(),
          arguments: jsonText,
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('reasoning'),
          summary: z.array(z.unknown()),
          encrypted_content: z.literal(thought.signature),
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('custom_tool_call'),
          call_id: callId,
          name: toolName,
          namespace: z.string().optional(),
          input: z.string(),
        }),
        z.strictObject({
          ...itemOf,
          type: z.enum(['function_call_output', 'custom_tool_call_output']),
          call_id: callId,
          output: z.string(),
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('additional_tools'),
          role: z.literal('developer'),
          tools: z.array(anyResponsesTool),
        }),
      ]),
    )
    .min(1),
  stream: z.literal(true),
  tools: z.array(anyResponsesTool).optional(),
  tool_choice: z.enum(['auto', 'none', 'required']).optional(),
  parallel_tool_calls: z.boolean().optional(),
  reasoning: z
    .strictObject({
      effort: z.string().optional(),
      summary: z.string().nullish(),
      context: z.string().optional(),
    })
    .nullish(),
  store: z.boolean().optional(),
  include: z.array(z.string()).optional(),
  text: z.strictObject({ verbosity: z.string().optional(), format: object.optional() }).optional(),
  prompt_cache_key: z.string().optional(),
  client_metadata: object.optional(),
  max_output_tokens: z.int().min(16).optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  metadata: object.optional(),
  safety_identifier: z.string().optional(),
})
