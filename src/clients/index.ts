/** The clients that this version knows: one line each. */
import { aider } from './aider.ts'
import { anthropicSdk } from './anthropic-sdk.ts'
import { claudeCode } from './claude-code.ts'
import { cline } from './cline.ts'
import { codex } from './codex.ts'
import { continueDev } from './continue.ts'
import { cursor } from './cursor.ts'
import { geminiCli } from './gemini-cli.ts'
import { langchain } from './langchain.ts'
import { openaiSdk } from './openai-sdk.ts'
import { opencode } from './opencode.ts'
import type { Recipe } from './recipe.ts'

export const recipes: readonly Recipe[] = [
  claudeCode,
  codex,
  geminiCli,
  opencode,
  cline,
  aider,
  continueDev,
  cursor,
  openaiSdk,
  anthropicSdk,
  langchain,
]
