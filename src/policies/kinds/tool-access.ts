/**
 * The tools that may be offered to a model (pre_request) and called by it (on the answer), by exact name or `*` glob;
 * a denial wins. A tool that a provider runs itself has its type as its name: `web_search`.
 */
import { z } from 'zod'
import { isObject } from '../../languages/reading/json-value.ts'
import { offersTools } from '../../languages/responses/offered-tools.ts'
import { someGlobMatches } from '../../tokens/governed-token.ts'
import { namesOfTool, toolsInInput } from '../tool-names.ts'
import { type Change, capturing, type Decision, everyStage, policyKind } from './kind.ts'

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
      ...capturing,
    })
    .refine(({ allow, deny }) => allow !== undefined || deny !== undefined, 'Give allow, deny or both'),
  compile: ({ allow, deny, action }) => {
    const isAllowed = (name: string): boolean =>
      (allow === undefined || someGlobMatches(allow, name)) && (deny === undefined || !someGlobMatches(deny, name))
    return {
      form: 'whole',
      // A tool that a person may still allow is shown.
      ...(action === 'escalate' ? {} : { allowsTool: isAllowed }),
      consider({ stage, context, body }): Decision | null {
        const onRequest = stage === 'pre_request'
        const names = onRequest ? context.request.tools : (context.response?.tool_calls ?? [])
        if (names.every(isAllowed)) return null
        const refused = [...new Set(names.filter((name) => !isAllowed(name)))]
        const targets = refused.map((name) => `tools.${name}`)
        const found = { reasonCode: 'policy.tool_not_allowed', targets }
        if (action === 'remove' && onRequest) return { ...found, verdict: 'rewrite', changes: without(body, isAllowed) }
        const message = 'A policy does not allow a tool of this message'
        return { ...found, verdict: action === 'remove' ? 'deny' : action, message }
      },
    }
  },
})

/** The request without those tools; if none are left, the tool choice is removed too. */
const without = (body: Readonly<Record<string, unknown>> | null, isAllowed: (name: string) => boolean): Change[] => [
  ...(
    [
      ['tools', isObject(body?.toolConfig) ? 'toolConfig' : 'tool_choice'],
      ['functions', 'function_call'],
    ] as const
  ).flatMap(([member, choice]) => withoutOf(body?.[member], { member, choice, chosen: body?.[choice] }, isAllowed)),
  ...withoutInInput(body?.input, isAllowed),
]

function withoutInInput(input: unknown, isAllowed: (name: string) => boolean): Change[] {
  if (!Array.isArray(input) || toolsInInput(input).every(isAllowed)) return []
  const value = input.map((item: unknown) =>
    isObject(item) && offersTools(item) ? { ...item, tools: allowedOf(item.tools, isAllowed) } : item,
  )
  return [{ member: 'input', value }]
}

/** A value that is not a list is removed, because readers interpret it differently. */
const allowedOf = (offered: unknown, isAllowed: (name: string) => boolean): unknown[] =>
  Array.isArray(offered) ? offered.flatMap((tool: unknown) => withoutDeclarations(tool, isAllowed)) : []

function withoutOf(
  offered: unknown,
  { member, choice, chosen }: { member: string; choice: string; chosen: unknown },
  isAllowed: (name: string) => boolean,
): Change[] {
  if (namesOfTool(offered).every(isAllowed)) return []
  const left = allowedOf(offered, isAllowed)
  const choiceGone = chosen !== undefined && (left.length === 0 || !chosenTools(chosen).every(isAllowed))
  return [
    { member, value: left.length === 0 ? undefined : left },
    ...(choiceGone ? [{ member: choice, value: undefined }] : []),
  ]
}

/** A tool, or what is left of one of Gemini's, which declares several functions. */
function withoutDeclarations(tool: unknown, isAllowed: (name: string) => boolean): unknown[] {
  const declared = isObject(tool) ? tool.functionDeclarations : undefined
  if (!isObject(tool) || !Array.isArray(declared)) return namesOfTool(tool).every(isAllowed) ? [tool] : []
  const kept = declared.filter((each: unknown) => namesOfTool(each).every(isAllowed))
  const left = Object.entries(tool).flatMap(([member, value]): [string, unknown][] => {
    if (member === 'functionDeclarations') return kept.length > 0 ? [[member, kept]] : []
    return namesOfTool({ [member]: value }).every(isAllowed) ? [[member, value]] : []
  })
  return left.length === 0 ? [] : [Object.fromEntries(left)]
}

/** The tools that Gemini's language lets the model choose among. */
const allowedFunctions = (choice: object): string[] | null => {
  if (!('functionCallingConfig' in choice) || !isObject(choice.functionCallingConfig)) return null
  return namesOfTool(choice.functionCallingConfig.allowedFunctionNames)
}

/** The tool that the model was told to call; none if it may choose. */
const chosenTools = (choice: unknown): string[] =>
  isObject(choice) && allowedFunctions(choice) !== null
    ? (allowedFunctions(choice) ?? [])
    : typeof choice === 'object' &&
        choice !== null &&
        !('type' in choice && (choice.type === 'auto' || choice.type === 'any'))
      ? namesOfTool(choice)
      : []
