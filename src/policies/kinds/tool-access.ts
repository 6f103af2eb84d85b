/**
 * Which tools may be offered to a model (pre_request) and called by it (on the answer), by exact name or `*` glob; a
 * denial wins. A tool that a provider runs itself goes by its type: `web_search`.
 */
import { z } from 'zod'
import { globMatches } from '../../tokens/governed.ts'
import { toolName } from '../context.ts'
import { type Decision, everyStage, policyKind } from './kind.ts'

const globs = z.array(z.string().min(1).max(200)).max(1000)

export const toolAccess = policyKind({
  kind: 'tool-access',
  about: 'Says which tools may be offered to a model and called by it',
  stages: everyStage,
  config: z
    .strictObject({
      allow: globs.optional().describe('Only these; exact names or * globs; an empty list allows none'),
      deny: globs.min(1).optional().describe('None of these'),
      action: z
        .enum(['deny', 'block', 'remove', 'escalate'])
        .default('deny')
        .describe('remove takes the tool out of the request; an answer that calls it is denied'),
    })
    .refine(({ allow, deny }) => allow !== undefined || deny !== undefined, 'Give allow, deny or both'),
  compile: ({ allow, deny, action }) => {
    const isAllowed = (name: string): boolean =>
      (allow === undefined || allow.some((glob) => globMatches(glob, name))) &&
      !(deny?.some((glob) => globMatches(glob, name)) ?? false)
    return {
      form: 'whole',
      consider({ stage, context, body }): Decision | null {
        const onRequest = stage === 'pre_request'
        const names = onRequest ? context.request.tools : (context.response?.tool_calls ?? [])
        const refused = [...new Set(names.filter((name) => !isAllowed(name)))]
        if (refused.length === 0) return null
        const targets = refused.map((name) => `tools.${name}`)
        const found = { reasonCode: 'policy.tool_not_allowed', targets }
        if (action === 'remove' && onRequest) return { ...found, verdict: 'rewrite', changes: without(body, isAllowed) }
        const message = 'A policy does not allow a tool of this'
        return { ...found, verdict: action === 'remove' ? 'deny' : action, message }
      },
    }
  },
})

/** The request without those tools; without any, `tool_choice` has nothing to choose from and goes too. */
function without(body: Readonly<Record<string, unknown>> | null, isAllowed: (name: string) => boolean) {
  const tools = Array.isArray(body?.tools) ? body.tools : []
  const left = tools.filter((tool: unknown) => isAllowed(toolName(tool) ?? ''))
  const chosen = chosenTool(body?.tool_choice)
  const changes = [{ member: 'tools', value: left.length === 0 ? undefined : left }]
  const choiceGone = body?.tool_choice !== undefined && (left.length === 0 || (chosen !== null && !isAllowed(chosen)))
  return choiceGone ? [...changes, { member: 'tool_choice', value: undefined }] : changes
}

/** The one tool that the model was told to call; null where it may choose. */
const chosenTool = (choice: unknown): string | null =>
  typeof choice === 'object' && choice !== null && 'type' in choice && choice.type !== 'auto' && choice.type !== 'any'
    ? toolName(choice)
    : null
