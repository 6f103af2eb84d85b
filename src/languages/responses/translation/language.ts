/**
 * The responses language, spoken by applications and by providers (OpenAI's API reference, Responses), as far as it
 * keeps nothing between requests.
 */

import { readOpenAiError, writeOpenAiError } from '../../translation/openai-shared.ts'
import { featureTable } from '../../translation/settings.ts'
import type { Language } from '../../translation-language.ts'
import { responsesMembers } from '../members.ts'
import { readResponsesAnswer, writeResponsesAnswer } from './answers.ts'
import { readResponsesRequest } from './read-request.ts'
import { ResponsesStreamReader } from './read-stream.ts'
import { writeResponsesRequest } from './write-request.ts'
import { ResponsesStreamWriter } from './write-stream.ts'

const features = featureTable(
  { members: responsesMembers },
  {
    instructions: { as: 'instructions; several, a developer message' },
    later_instructions: { as: 'input messages of role developer' },
    speaker_name: { refused: 'input messages have no name' },
    image_url: { as: '`input_image.image_url`' },
    image_data: { as: 'input_image.image_url, a data URL' },
    image_file: { as: '`input_image.file_id`' },
    image_detail: { as: '`input_image.detail`' },
    document_url: { as: '`input_file.file_url`' },
    document_data: { as: 'input_file.file_data, a data URL' },
    document_text: { as: 'input_file.file_data of text/plain', said: null },
    document_file: { as: '`input_file.file_id`' },
    document_citations: { refused: 'citations cannot be asked for' },
    audio_data: { refused: 'input holds no audio' },
    tools: { as: '`tools`' },
    strict_tools: { as: '`tools.strict`' },
    tool_choice: { as: '`tool_choice`' },
    named_tool: { as: '`tool_choice.name`' },
    parallel_tools: { as: '`parallel_tool_calls`' },
    tool_calls: { as: 'function_call items' },
    call_signature: { withoutEffect: 'none but the provider that signed a call reads it', said: '`extra_content`' },
    tool_results: { as: 'function_call_output items' },
    tool_result_media: { as: 'function_call_output.output, an array' },
    tool_errors: { as: '"Error: " before the text of the result', said: null },
    json_output: { as: '`text.format`' },
    schema_output: { as: '`text.format`' },
    reasoning_effort: { as: '`reasoning.effort`' },
    reasoning_budget: { as: 'reasoning.effort: low up to 4096 tokens, medium up to 16384, else high', said: null },
    thoughts: { as: 'reasoning items with encrypted_content' },
    redacted_thoughts: { as: 'reasoning items with encrypted_content' },
    foreign_thoughts: {
      withoutEffect: 'none but the provider that signed a thought takes it back',
      said: 'reasoning items with encrypted_content',
    },
    refusals: { as: 'refusal parts' },
    citations: { as: 'annotations; those without an address are left out, they point at text that stands there' },
    top_k: { refused: 'there is no top_k' },
    seed: { refused: 'there is no seed' },
    frequency_penalty: { refused: 'there is no frequency_penalty' },
    presence_penalty: { refused: 'there is no presence_penalty' },
    stop: { refused: 'there are no stop sequences' },
    end_user: { as: '`user`', said: 'safety_identifier, user' },
    cache_marker: { withoutEffect: 'providers of this language keep what they can unasked', said: '`cache_control`' },
    answer_thoughts: { as: 'reasoning items: summary, encrypted_content' },
    answer_citations: { as: '`annotations`' },
    answer_refusal: { as: 'refusal parts' },
    answer_stop_sequence: { withoutEffect: 'which one was met is not told' },
    answer_usage: { as: 'input_tokens_details, output_tokens_details' },
  },
)

export const responses = {
  provider: {
    name: 'responses',
    writeRequest: writeResponsesRequest,
    readAnswer: readResponsesAnswer,
    readError: readOpenAiError,
    streamReader: () => new ResponsesStreamReader(),
  },
  caller: {
    name: 'responses',
    readRequest: readResponsesRequest,
    writeAnswer: writeResponsesAnswer,
    writeError: writeOpenAiError,
    streamWriter: (asked) => new ResponsesStreamWriter(asked),
  },
  features,
  members: responsesMembers,
} satisfies Language
