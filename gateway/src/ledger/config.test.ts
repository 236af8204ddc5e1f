import { describe, expect, it } from 'vitest'
import { checkLedger, type LedgerSections, ledgerSettingsOf } from './config.ts'

function issuesOf(sections: LedgerSections): string[] {
  const issues: string[] = []
  checkLedger(sections, (path, message) => issues.push(`${path.join('.')}: ${message}`))
  return issues
}

describe('settings of the ledger', () => {
  it('use the database of the configuration, with defaults', () => {
    expect(ledgerSettingsOf({ database: { url: 'sqlite://a.db' } })).toEqual({
      url: 'sqlite://a.db',
      urlField: 'config.database.url',
      kind: 'sqlite',
      maxConnections: 5,
      retentionMs: 30 * 86_400_000,
      usageRetentionMs: 400 * 86_400_000,
      payloads: false,
      maxPayloadSize: 32_768,
      maxQueue: 200_000,
      spool: undefined,
      explain: 'errors',
      attributes: {},
    })
  })

  it('prefer the database of their own', () => {
    const logging = { database: { url: 'postgres://db/ledger' } }
    expect(ledgerSettingsOf({ logging, database: { url: 'sqlite://a.db' } })).toMatchObject({
      url: 'postgres://db/ledger',
      kind: 'postgres',
    })
  })

  it('are absent without a database, and if the ledger is disabled', () => {
    expect(ledgerSettingsOf({})).toBeUndefined()
    const logging = { database: { enabled: false } }
    expect(ledgerSettingsOf({ logging, database: { url: 'sqlite://a.db' } })).toBeUndefined()
  })
})

describe('the check of the ledger', () => {
  it.each([
    [{ url: 'mysql://db' }, 'logging.database.url: expected sqlite://<path> or postgres://…'],
    [{ url: 'sqlite://' }, 'logging.database.url: must name a file'],
    [{ enabled: true }, 'logging.database.enabled: requires config.logging.database.url'],
    [{ retention: '10m' }, 'logging.database.retention: must be at least 1h'],
    [{ retention: '30d', usageRetention: '7d' }, 'logging.database.usageRetention: must not be shorter'],
    [{ retention: '500d' }, 'logging.database.retention: must not be longer than usageRetention (400d)'],
  ])('reports %j', (database, message) => {
    expect(issuesOf({ logging: { database } })).toEqual([expect.stringContaining(message)])
  })

  it('accepts a complete section', () => {
    const database = { url: 'postgres://u:p@db/x', retention: '7d', usageRetention: '800d', payloads: true }
    expect(issuesOf({ logging: { database } })).toEqual([])
  })
})
