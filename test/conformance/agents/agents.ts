/**
 * Prints which coding agents work with which providers, and what the gateway adds to the first token of a long request.
 * With `--real` it also fetches real agents and lets each do a task, direct and through the gateway.
 */
import { measureFirstToken } from './first-token.ts'
import { playMatrix, startInstallation } from './matrix.ts'
import { runRealAgents } from './real-agents.ts'
import { tableOf } from './table.ts'

await using installation = await startInstallation()
const cells = await playMatrix(installation)
console.log(tableOf(cells))
const passed = cells.filter(({ faults }) => faults.length === 0).length
console.log(`${passed} of ${cells.length} pass.\n`)

await using plain = await startInstallation({ policies: false })
for (const [where, place] of [
  ['the policies of the handbook', installation],
  ['no policy', plain],
] as const)
  for (const model of ['anthropic', 'openai']) {
    const { requestBytes, direct, through } = await measureFirstToken(place, model)
    const times = `${through.toFixed(2)} ms, direct ${direct.toFixed(2)} ms, ${(through / direct).toFixed(2)} times`
    console.log(`First token of ${requestBytes / 1000} kB from messages to ${model} with ${where}: ${times}`)
  }

if (process.argv.includes('--real')) {
  console.log('\n| agent | way | requests | tokens sent | |\n| --- | --- | --- | --- | --- |')
  for await (const { agent, way, requests, tokens, skipped } of runRealAgents(installation))
    console.log(
      `| ${agent} | ${way} | ${requests} | ${tokens} | ${skipped === null ? 'done' : `skipped: ${skipped}`} |`,
    )
}
