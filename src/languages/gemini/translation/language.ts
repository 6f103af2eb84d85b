/**
 * Gemini's language, `generateContent` of the API v1beta: spoken by applications and by providers of the kind gemini.
 */

import { featureTable } from '../../translation/settings.ts'
import type { Language } from '../../translation-language.ts'
import { readGeminiError } from '../answers.ts'
import { writeGeminiError } from '../error.ts'
import { geminiMembers, generationConfigMembers } from '../members.ts'
import { readGeminiRequest } from './read-request.ts'
import { GeminiStreamReader, readGeminiAnswer } from './read-stream.ts'
import { writeGeminiAnswer } from './write-answer.ts'
import { writeGeminiRequest } from './write-request.ts'
import { GeminiStreamWriter } from './write-stream.ts'

const features = featureTable(
  { members: generationConfigMembers, within: 'generationConfig.' },
  {
    instructions: { as: '`systemInstruction`' },
    later_instructions: { refused: 'instructions stand only before the conversation', said: null },
    speaker_name: { refused: 'speakers have no names', said: null },
    image_url: { as: '`fileData`' },
    image_data: { as: '`inlineData`' },
    image_file: { refused: 'files belong to one provider', said: null },
    image_detail: {
      as: '`generationConfig.mediaResolution`',
      refused: 'one that is not the same for all media',
      said: null,
    },
    document_url: { as: '`fileData`' },
    document_data: { as: '`inlineData`, its title as a text before it' },
    document_text: { as: '`inlineData` of `text/plain`' },
    document_file: { refused: 'files belong to one provider', said: null },
    document_citations: { refused: 'it does not cite documents', said: null },
    audio_data: { as: '`inlineData`' },
    tools: { as: '`functionDeclarations` with `parametersJsonSchema`' },
    strict_tools: { as: 'mode `VALIDATED`, for all tools', said: null },
    tool_choice: { as: '`functionCallingConfig.mode`: `AUTO`, `NONE`, `ANY`' },
    named_tool: { as: '`allowedFunctionNames`' },
    parallel_tools: { refused: 'it cannot be kept to one call at a time; allowing more is what it does', said: null },
    tool_calls: { as: '`functionCall` parts' },
    call_signature: {
      as: '`thoughtSignature` of the call; the text that skips the check where there is none',
      said: '`thoughtSignature` of the call',
    },
    tool_results: { as: '`functionResponse` parts: `output`' },
    tool_result_media: { as: '`functionResponse.parts`, as bytes', refused: 'addresses' },
    tool_errors: { as: '`error` of the response' },
    json_output: { as: '`responseMimeType`' },
    schema_output: { as: '`responseJsonSchema`' },
    reasoning_effort: {
      as: '`thinkingLevel`; `thinkingBudget` for models before the third generation',
      refused: 'more than high; none from the third generation on',
    },
    reasoning_budget: { as: '`thinkingBudget`' },
    thoughts: { as: 'parts with `thought` and `thoughtSignature`' },
    redacted_thoughts: { withoutEffect: 'it hides none of its own' },
    foreign_thoughts: { withoutEffect: 'none but the provider that signed a thought takes it back' },
    refusals: { as: 'text', said: null },
    citations: { withoutEffect: 'a text is read without its sources' },
    stop: { refused: 'more than 5' },
    end_user: { withoutEffect: 'it has no place for it, and answers do not depend on it' },
    cache_marker: { withoutEffect: 'it keeps common beginnings by itself' },
    answer_thoughts: { as: 'parts with `thought` and `thoughtSignature`' },
    answer_citations: { as: '`citationMetadata`' },
    answer_refusal: { as: '`finishReason` `SAFETY` and the like, `promptFeedback.blockReason`' },
    answer_stop_sequence: { withoutEffect: 'it does not say which' },
    answer_usage: { as: '`usageMetadata`' },
  },
)

export const gemini = {
  provider: {
    name: 'gemini',
    writeRequest: writeGeminiRequest,
    readAnswer: readGeminiAnswer,
    readError: readGeminiError,
    streamReader: () => new GeminiStreamReader(),
  },
  caller: {
    name: 'gemini',
    readRequest: readGeminiRequest,
    writeAnswer: writeGeminiAnswer,
    writeError: writeGeminiError,
    streamWriter: (asked) => new GeminiStreamWriter(asked),
  },
  features,
  members: geminiMembers,
} satisfies Language
