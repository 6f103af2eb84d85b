/** Bedrock's Converse: one language for the models of many makers. No application speaks it to this gateway. */

import { featureTable } from '../translation/settings.ts'
import type { Language } from '../translation-language.ts'
import { readConverseAnswer, readConverseError } from './answers.ts'
import { inferenceConfigMembers } from './members.ts'
import { ConverseStreamReader } from './read-stream.ts'
import { writeConverseRequest } from './write-request.ts'

const noSuchSetting = { refused: 'there is no such setting' }
const noPenalty = { refused: 'there is no such setting, but 0 is none' }

const features = featureTable(
  { members: inferenceConfigMembers, within: 'inferenceConfig.' },
  {
    instructions: { as: '`system`' },
    later_instructions: { refused: 'instructions stand before the conversation' },
    speaker_name: { refused: 'speakers have no names' },
    image_url: { as: '`image.source.s3Location`', refused: 'addresses that are not of S3' },
    image_data: { as: '`image.source.bytes`', refused: 'what is not PNG, JPEG, GIF or WebP' },
    image_file: { refused: 'there are no files' },
    image_detail: { refused: 'there is no such setting; `auto` is what it does' },
    document_url: { as: '`document.source.s3Location`', refused: 'addresses that are not of S3' },
    document_data: { as: '`document.source.bytes`' },
    document_text: { as: '`document.source.text`' },
    document_file: { refused: 'there are no files' },
    document_citations: { as: '`document.citations`' },
    audio_data: { as: '`audio.source.bytes`' },
    tools: { as: '`toolConfig.tools`' },
    strict_tools: { as: '`toolSpec.strict`' },
    tool_choice: { as: '`toolConfig.toolChoice`; none leaves the tools out', refused: 'none, once some were called' },
    named_tool: { as: '`toolConfig.toolChoice.tool`' },
    parallel_tools: { refused: 'parallel calls cannot be forbidden; allowing them is what it does' },
    tool_calls: { as: '`toolUse`' },
    call_signature: { withoutEffect: 'no model behind it signs calls' },
    tool_results: { as: '`toolResult.content`' },
    tool_result_media: { as: '`toolResult.content`' },
    tool_errors: { as: '`toolResult.status`' },
    json_output: { refused: 'it keeps to a schema or to none' },
    schema_output: { as: '`outputConfig.textFormat`' },
    reasoning_effort: {
      as: '`thinking` and `output_config` (Anthropic), `reasoning_effort` (gpt-oss)',
      refused: 'models of other makers, but for none',
    },
    reasoning_budget: { as: '`thinking.budget_tokens` (Anthropic)', refused: 'models of other makers' },
    thoughts: { as: '`reasoningContent.reasoningText`' },
    redacted_thoughts: { as: '`reasoningContent.redactedContent`' },
    foreign_thoughts: { withoutEffect: 'none but the provider that signed a thought takes it back' },
    refusals: { as: '`text`' },
    citations: { as: '`citationsContent`' },
    top_k: { as: '`top_k` (Anthropic), `inferenceConfig.topK` (Nova)', refused: 'models of other makers' },
    seed: noSuchSetting,
    frequency_penalty: noPenalty,
    presence_penalty: noPenalty,
    end_user: { as: '`requestMetadata.end_user`, where its characters are allowed there; no answer depends on it' },
    cache_marker: { as: '`cachePoint`' },
    answer_thoughts: { as: '`reasoningContent`' },
    answer_citations: { as: '`citationsContent`' },
    answer_refusal: { as: '`stopReason` guardrail_intervened and content_filtered' },
    answer_stop_sequence: { as: '`additionalModelResponseFields` (Anthropic)' },
    answer_usage: { as: '`usage`; it does not count thinking apart' },
  },
)

export const converse: Language = {
  provider: {
    name: 'converse',
    writeRequest: writeConverseRequest,
    readAnswer: readConverseAnswer,
    readError: readConverseError,
    streamReader: () => new ConverseStreamReader(),
  },
  caller: null,
  features,
}
