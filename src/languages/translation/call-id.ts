/**
 * Anthropic and Bedrock accept call ids of letters, digits, `_` and `-`, at most 64 of them (Bedrock Runtime API,
 * ToolUseBlock, ToolResultBlock). Other ids are converted to this form, the same way for a call and its result.
 */
const plain = /^[\w-]{1,64}$/

export const plainCallId = (id: string): string => (plain.test(id) ? id : `call_${Bun.hash(id).toString(36)}`)
