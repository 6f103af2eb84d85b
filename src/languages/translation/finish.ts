/** Why an answer ended. Calls in the answer count more than the provider's reason. */
import type { FinishReason } from '../neutral.ts'

/**
 * If there are calls, the caller has to answer them, even if the provider reports a plain stop: OpenAI does for a
 * function that was forced by its name (Chat Completions, `tool_choice`), Converse for some models. A stop sequence
 * that was met stays the reason.
 */
export const finishWith = (finish: FinishReason, called: boolean): FinishReason =>
  finish === 'stop' && called ? 'tool_calls' : finish
