/**
 * Chat completions, spoken by applications and by providers (OpenAI's API reference, Chat). The language has no
 * member for thoughts; `reasoning.ts` says how they are written.
 */

import { readOpenAiError, writeOpenAiError } from '../../translation/openai-shared.ts'
import { featureTable } from '../../translation/settings.ts'
import type { Language } from '../../translation-language.ts'
import { chatMembers } from '../members.ts'
import { readChatAnswer, writeChatAnswer } from './answers.ts'
import { readChatRequest } from './read-request.ts'
import { ChatStreamReader } from './read-stream.ts'
import { writeChatRequest } from './write-request.ts'
import { ChatStreamWriter } from './write-stream.ts'

const features = featureTable(
  { members: chatMembers },
  {
    instructions: { as: 'messages of role system' },
    later_instructions: { as: 'messages of role system' },
    speaker_name: { as: '`name`' },
    image_url: { as: '`image_url.url`' },
    image_data: { as: 'image_url.url, a data URL' },
    image_file: { refused: 'images have no file id' },
    image_detail: { as: '`image_url.detail`' },
    document_url: { refused: 'files have no address' },
    document_data: { as: 'file.file_data, a data URL' },
    document_text: { as: 'a text part, the title before it', said: null },
    document_file: { as: '`file.file_id`' },
    document_citations: { refused: 'citations cannot be asked for' },
    audio_data: { as: '`input_audio`', refused: 'what is not wav or mp3' },
    tools: { as: '`tools`' },
    strict_tools: { as: '`tools.function.strict`' },
    tool_choice: { as: '`tool_choice`' },
    named_tool: { as: '`tool_choice.function.name`' },
    parallel_tools: { as: '`parallel_tool_calls`' },
    tool_calls: { as: '`tool_calls`' },
    call_signature: {
      as: 'tool_calls.extra_content.google.thought_signature, where the provider itself gave it',
      said: '`tool_calls.extra_content.google.thought_signature`',
    },
    tool_results: { as: 'messages of role tool' },
    tool_result_media: { refused: 'tool results are text' },
    tool_errors: { as: '"Error: " before the text of the result', said: null },
    json_output: { as: '`response_format`' },
    schema_output: { as: '`response_format.json_schema`' },
    reasoning_effort: { as: '`reasoning_effort`' },
    reasoning_budget: { as: 'reasoning_effort: low up to 4096 tokens, medium up to 16384, else high', said: null },
    thoughts: { as: '`reasoning_content`, `reasoning_details`' },
    redacted_thoughts: { as: '`reasoning_details`' },
    foreign_thoughts: {
      withoutEffect: 'none but the provider that signed a thought takes it back',
      said: '`reasoning_details`',
    },
    refusals: { as: '`refusal`' },
    citations: { withoutEffect: 'they point at text that stands there itself', said: '`annotations`' },
    top_k: { refused: 'there is no top_k' },
    end_user: { as: '`user`', said: 'safety_identifier, user' },
    cache_marker: { withoutEffect: 'providers of this language keep what they can unasked', said: '`cache_control`' },
    answer_thoughts: { as: '`reasoning_content`, `reasoning_details`' },
    answer_citations: { as: '`annotations`' },
    answer_refusal: { as: '`refusal`' },
    answer_stop_sequence: { withoutEffect: 'which one was met is not told' },
    answer_usage: { as: 'prompt_tokens_details, completion_tokens_details' },
  },
)

export const chat = {
  provider: {
    name: 'chat',
    writeRequest: writeChatRequest,
    readAnswer: readChatAnswer,
    readError: readOpenAiError,
    streamReader: () => new ChatStreamReader(),
  },
  caller: {
    name: 'chat',
    readRequest: readChatRequest,
    writeAnswer: writeChatAnswer,
    writeError: writeOpenAiError,
    streamWriter: (asked) => new ChatStreamWriter(asked),
  },
  features,
  members: chatMembers,
} satisfies Language
