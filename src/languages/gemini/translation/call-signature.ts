/** The signature of a call as `thoughtSignature`: another provider's is marked, and comes back to it alone. */
import type { CallSignature } from '../../neutral.ts'
import { markSignature } from '../../translation/signature.ts'

export const markedCallSignature = (callId: string, { text, language }: CallSignature): string =>
  language === 'gemini' ? text : markSignature({ language, callId, redacted: false, signature: text })
