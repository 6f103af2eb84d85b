/** The kinds of receivers. To add one: its file, a line here, its name in `sink-resource.ts`. */
import type { SinkKind } from '../sink.ts'
import { type SinkKindName, sinkKinds } from '../sink-resource.ts'
import { clickhouse, datadog, http, splunk } from './http.ts'
import { kafka } from './kafka.ts'
import { otlp } from './otlp.ts'
import { s3 } from './s3.ts'
import { syslog } from './syslog.ts'

const kinds: Readonly<Record<SinkKindName, SinkKind>> = { http, splunk, datadog, s3, otlp, syslog, kafka, clickhouse }

/** The kind of a row; an unknown one, of a later version, counts as `http`. */
export const sinkKindOf = (name: string): SinkKind => kinds[sinkKinds.find((known) => known === name) ?? 'http']
