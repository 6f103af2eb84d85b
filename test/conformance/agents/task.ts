/** The task that the scripted provider plays with every agent: what it calls, what comes back, and what it says. */

/** What is hard to carry: quotes, escapes, lines, characters of several bytes, a number that looks like a float. */
export const shellInput = {
  command: 'printf \'%s\\n\' "Grüße aus 東京 👩‍👩‍👧" \\\n  | grep -c "\\u0041"',
  timeout: 120_000,
  nested: { list: [1.5, null, true, ''], 'key "quoted"': 'line\r\nline' },
}
export const patchText =
  '*** Begin Patch\n*** Update File: src/größe.ts\n@@\n-const a = "1"\n+const a = \'\\t2\'\n*** End Patch\n'
export const resultText = 'Exit code: 0\nGrüße aus 東京 "quoted" \\ 3000 ms\n'
export const openingText = 'I look first: '
export const closingParts = ['Grüße', ' aus 東京 ', '👩‍👩‍👧', '\n```ts\nconst a = "\\u0041"\n', '```', '\r\n<done/>']
export const closingText = closingParts.join('')

export const shellTools = ['Bash', 'exec_command', 'bash', 'run_shell_command']
export const patchTool = 'apply_patch'

/** What every answer says it used: of the input 400 are cached. */
export const used = { input: 1000, cached: 400, output: 50 }

/** Gemini 3 signs the first call of an answer, and refuses the call without it (Gemini API, thought signatures). */
export const callSignature = 'c2lnbmF0dXJlIG9mIHRoZSBjYWxs'
/** How Anthropic signs a thought, which must come back unchanged or not at all. */
export const thought = { thinking: 'I should look “first”.', signature: 'c2lnbmF0dXJlIG9mIHRoZSB0aG91Z2h0' }
