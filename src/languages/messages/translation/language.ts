/**
 * The messages language (Anthropic's Messages API, version 2023-06-01, as the official client 1.11 has it): spoken by
 * applications and by providers of the kind anthropic.
 */
import { featureTable } from '../../translation/settings.ts'
import type { Language } from '../../translation-language.ts'
import { messagesMembers } from '../members.ts'
import { readMessagesAnswer, readMessagesError, writeMessagesAnswer, writeMessagesError } from './answers.ts'
import { readMessagesRequest } from './read-request.ts'
import { MessagesStreamReader } from './read-stream.ts'
import { writeMessagesRequest } from './write-request.ts'
import { MessagesStreamWriter } from './write-stream.ts'

const features = featureTable(
  { members: messagesMembers },
  {
    instructions: { as: '`system` blocks' },
    later_instructions: { as: 'messages of the role `system`' },
    speaker_name: { refused: 'speakers have no names' },
    image_url: { as: '`image` with a `url` source' },
    image_data: { as: '`image` with a `base64` source' },
    image_file: { refused: 'files belong to one provider', said: null },
    image_detail: { refused: 'images are looked at in one way, but `auto` says just that', said: null },
    document_url: { as: '`document` with a `url` source' },
    document_data: { as: '`document` with a `base64` source', refused: 'what is not PDF or plain text' },
    document_text: { as: '`document` with a `text` source' },
    document_file: { refused: 'files belong to one provider', said: null },
    document_citations: { as: '`citations.enabled` of a `document`' },
    audio_data: { refused: 'it does not listen to audio', said: null },
    tools: { as: '`tools` with `input_schema`' },
    strict_tools: { as: '`strict` of a tool' },
    tool_choice: { as: '`tool_choice`: `auto`, `none`, `any`' },
    named_tool: { as: '`tool_choice` of type `tool`' },
    parallel_tools: { as: '`tool_choice.disable_parallel_tool_use`' },
    tool_calls: { as: '`tool_use` blocks' },
    call_signature: {
      withoutEffect: 'none but the provider that signed a call reads it',
      said: 'a `thinking` block of its own',
    },
    tool_results: { as: '`tool_result` blocks' },
    tool_result_media: { as: 'blocks in a `tool_result`' },
    tool_errors: { as: '`is_error` of a `tool_result`' },
    json_output: { refused: 'it keeps to a schema or to none', said: null },
    schema_output: { as: '`output_config.format`' },
    reasoning_effort: {
      as: '`output_config.effort` and adaptive `thinking`; a budget for models up to 4.5',
      refused: 'minimal, from 4.6 on',
    },
    reasoning_budget: { as: '`thinking.budget_tokens`' },
    thoughts: { as: '`thinking` blocks with their `signature`' },
    redacted_thoughts: { as: '`redacted_thinking` blocks' },
    foreign_thoughts: {
      withoutEffect: 'none but the provider that signed a thought takes it back',
      said: 'a marked `signature`',
    },
    refusals: { as: 'text', said: null },
    citations: {
      withoutEffect: 'they point at text that stands there itself',
      said: '`citations` of a text block',
    },
    seed: { refused: 'it takes no seed', said: null },
    frequency_penalty: { refused: 'it has no penalties, but 0 is none', said: null },
    presence_penalty: { refused: 'it has no penalties, but 0 is none', said: null },
    end_user: { as: '`metadata.user_id`' },
    cache_marker: { as: '`cache_control` of a block or a tool' },
    answer_thoughts: { as: '`thinking` and `redacted_thinking` blocks' },
    answer_citations: {
      as: '`citations` of a text block: places in documents; one of the web needs the seal of its own search, and is left out',
    },
    answer_refusal: { as: '`stop_reason` `refusal`, its text in `stop_details.explanation`' },
    answer_stop_sequence: { as: '`stop_sequence`' },
    answer_usage: { as: '`usage`, the cache writes by their lifetime' },
  },
)

export const messages = {
  provider: {
    name: 'messages',
    writeRequest: writeMessagesRequest,
    readAnswer: readMessagesAnswer,
    readError: readMessagesError,
    streamReader: () => new MessagesStreamReader(),
  },
  caller: {
    name: 'messages',
    readRequest: readMessagesRequest,
    writeAnswer: writeMessagesAnswer,
    writeError: writeMessagesError,
    streamWriter: (asked) => new MessagesStreamWriter(asked),
  },
  features,
  members: messagesMembers,
} satisfies Language
