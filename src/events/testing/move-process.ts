/** A process that moves records to ClickHouse, to be killed: `bun move-process.ts DIRECTORY CLICKHOUSE-URL`. */
import { join } from 'node:path'
import { createClient } from '@clickhouse/client'
import { silentLog } from '../../lib/log/log.ts'
import { openDatabase } from '../../store/open.ts'
import { Archive } from '../clickhouse/archive.ts'
import { moveOldRecords } from '../clickhouse/move.ts'

const [directory = '', url = ''] = process.argv.slice(2)
const ledger = await openDatabase(join(directory, 'ledger.db'), directory)
const archive = new Archive(createClient({ url }))
await moveOldRecords({ ledger, archive, clock: Date, log: silentLog, keepMilliseconds: 0 })
process.exit(0)
