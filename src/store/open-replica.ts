/**
 * Opens an embedded replica of a libSQL primary. Every call of it may block the thread, without limit where the primary
 * hangs, so only the replicator process opens one, and behind a forwarder that bounds each request.
 *
 * It is never closed: the last close empties the log into the database and removes two of the four files that only
 * together are a replica.
 */
import { pathToFileURL } from 'node:url'
import { placeAddon } from './open.ts'

export interface OpenReplica {
  /** Brings the replica to where the primary is; `frame` is the last that it holds. Blocks; throws libSQL's error. */
  sync(): Promise<{ frame: number | null }>
  /** Rows of one read of the local file. */
  read<Shape>(sql: string): Promise<Shape[]>
}

/** `dataDirectory` is where the native addon is placed. */
export async function openReplica(
  { file, url, token }: { file: string; url: string; token: string },
  dataDirectory: string,
): Promise<OpenReplica> {
  placeAddon(dataDirectory)
  const { createClient } = await import('@libsql/client')
  const client = createClient({ url: pathToFileURL(file).href, syncUrl: url, authToken: token })
  return {
    sync: async () => ({ frame: (await client.sync())?.frame_no ?? null }),
    async read<Shape>(sql: string) {
      // Anything but one bare select would go to the primary.
      const { columns, rows } = await client.execute(sql)
      return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))) as Shape[]
    },
  }
}
