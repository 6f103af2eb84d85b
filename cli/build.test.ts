import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

test('prints the result of the build without colour', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-build-'))
  const outfile = join(directory, 'gatehouse')
  try {
    const build = Bun.spawn([process.execPath, join(import.meta.dir, 'build.ts'), '--outfile', outfile], {
      env: { ...process.env, FORCE_COLOR: '1' },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const said = await Promise.all([new Response(build.stdout).text(), new Response(build.stderr).text()])
    expect([await build.exited, ...said]).toEqual([
      0,
      '',
      expect.stringMatching(/^\/.*\/gatehouse: \d+\.\d MB in \d+ ms\n$/),
    ])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}, 60_000)

test('refuses a target that it does not know, and names those that it does', () => {
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, join(import.meta.dir, 'build.ts'), '--target', 'plan9'])
  expect([exitCode, stderr.toString()]).toEqual([
    1,
    expect.stringMatching(/use one of linux-x64, .*darwin-arm64, darwin-x64, windows-x64/),
  ])
})
