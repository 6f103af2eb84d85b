/** Every dialect the gateway speaks. Adding one is its file and its line here. */
import { chat } from './chat.ts'
import type { Dialect } from './dialect.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'

export const dialects: readonly Dialect[] = [chat, responses, messages]
