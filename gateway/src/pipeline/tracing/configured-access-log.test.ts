import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { createAccessLog } from './configured-access-log.ts'
import { telemetryExpression } from './expressions.ts'
import { telemetryField } from './telemetry-fields.ts'

const delivery = { complete: true, status: 200, bytesSent: 5, firstByteAt: undefined }
const at = { time: '2026-01-01T00:00:00.000Z', endedAt: 20 }
const variables = new Set(['request'])

function logOf(filter: string, fields: Readonly<Record<string, string>>, path: string) {
  const failed: string[] = []
  const compile = (source: string) => compileCheckedCel(source, variables)
  const meter = (name: string) => ({ failed: () => failed.push(name) })
  const rules = {
    filter: telemetryExpression(compile(filter), meter('filter')),
    added: Object.entries(fields).map(([name, source]) => telemetryField(name, compile(source), meter(name))),
    removed: new Set(['path']),
  }
  const exchange = fixtureExchange({ path })
  const line = createAccessLog({ rules, otlp: undefined, sensitive: new Set() }).line(exchange, delivery, at)
  return { failed, line: line === undefined ? undefined : JSON.parse(line) }
}

describe('a line of the configured access log', () => {
  it('has one work limit for its filter and fields', () => {
    const search = 'request.path.contains("b")'
    const { failed, line } = logOf(`!${search}`, { first: search, second: search }, 'a'.repeat(4 * 2 ** 20))
    expect(failed).toEqual(['first', 'second'])
    expect(line).toMatchObject({ first: null, second: null })
  })

  it('has no value for a field whose text expands beyond the work limit', () => {
    const path = JSON.stringify({ items: Array(500).fill(1), ctx: 'a'.repeat(60_000) })
    const large = 'json(request.path).items.map(i, {"item": i, "ctx": json(request.path).ctx})'
    const { failed, line } = logOf('true', { large, small: '{"a": 1}' }, path)
    expect(failed).toContain('large')
    expect(line).toMatchObject({ large: null })
    expect(line).not.toHaveProperty('path')
  })
})
