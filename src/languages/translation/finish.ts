/** Why an answer is over, where calls in it say more than the provider's word. */
import type { FinishReason } from '../neutral.ts'

/**
 * Where there are calls, the caller has to answer them, also where the provider says that it just stopped: OpenAI does
 * for a function that was forced by its name (Chat Completions, `tool_choice`), Converse for some models. A stop
 * sequence that was met is no such word.
 */
export const finishWith = (finish: FinishReason, called: boolean): FinishReason =>
  finish === 'stop' && called ? 'tool_calls' : finish
