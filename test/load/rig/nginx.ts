/** nginx as a bare proxy: one worker that keeps its connections to the provider open and writes no log. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { descendantsOf } from '../../support/processes.ts'

export interface Nginx extends AsyncDisposable {
  url: string
  /** The master and its worker. */
  pids: readonly number[]
}

/** Everything that it writes lies in the directory, so that it needs no right of its own. */
const configuration = (directory: string, port: number, upstream: string): string => `
daemon off;
worker_processes 1;
pid ${directory}/pid;
error_log ${directory}/error.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  keepalive_requests 1000000000;
  upstream provider { server ${new URL(upstream).host}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://provider;
      proxy_http_version 1.1;
      proxy_set_header connection "";
      proxy_buffering off;
    }
  }
}
`

/** Gives null where nginx is not installed. */
export async function startNginx(upstream: string): Promise<Nginx | null> {
  const program = Bun.which('nginx')
  if (program === null) return null
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-nginx-'))
  const port = await freePort()
  const file = join(directory, 'nginx.conf')
  writeFileSync(file, configuration(directory, port, upstream))
  const errors = join(directory, 'error.log')
  const child = Bun.spawn([program, '-p', directory, '-c', file, '-e', errors], { stdout: 'ignore', stderr: 'inherit' })
  const url = `http://127.0.0.1:${port}`
  await until('nginx answers', async () => (await fetch(`${url}/counts`)).ok)
  return {
    url,
    pids: [child.pid, ...descendantsOf(child.pid)],
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
