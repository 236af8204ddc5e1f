import { describe, expect, it } from 'vitest'
import { isPostgresUrl, sqlitePathOf } from '../database/url.ts'
import { checkStorage } from './storage-config.ts'

function mistakesOf(url: string): string[] {
  const mistakes: string[] = []
  checkStorage({ storage: { mode: 'hybrid' }, database: { url } }, (path, message) =>
    mistakes.push(`${path.join('.')}: ${message}`),
  )
  return mistakes
}

describe('config.database.url', () => {
  it.each([
    'postgres://user:password@host/db',
    'postgresql://host/db?sslmode=verify-full',
    'POSTGRES://host/db',
    'sqlite:///var/lib/tollgate.db',
    'sqlite://data/tollgate.db',
    'sqlite:tollgate.db',
    'SQLite://tollgate.db',
    '/var/lib/tollgate:1/tollgate.db',
    './tollgate.db',
    'tollgate.db',
  ])('accepts %s', (url) => {
    expect(mistakesOf(url)).toEqual([])
  })

  it.each([
    ['mysql://user:hunter2@host/db', 'unsupported scheme `mysql:`'],
    ['postgress://user:hunter2@host/db', 'unsupported scheme `postgress:`, did you mean `postgres://`?'],
    ['postgre://user:hunter2@host/db', 'unsupported scheme `postgre:`, did you mean `postgres://`?'],
    ['Postgresq://hunter2@host/db', 'unsupported scheme `postgresq:`, did you mean `postgres://`?'],
    ['postgres:hunter2@host/db', 'unsupported scheme `postgres:`, did you mean `postgres://`?'],
    ['sqllite:///hunter2.db', 'unsupported scheme `sqllite:`, did you mean `sqlite://`?'],
    ['sqlite3:///hunter2.db', 'unsupported scheme `sqlite3:`, did you mean `sqlite://`?'],
    ['jdbc:postgresql://hunter2/db', 'unsupported scheme `jdbc:`'],
    ['file:hunter2.db', 'unsupported scheme `file:`'],
    ['localhost:5432/hunter2', 'unsupported scheme `localhost:`'],
    [':memory:', 'unsupported scheme'],
  ])('refuses %s without repeating it', (url, message) => {
    const [mistake = '', ...others] = mistakesOf(url)
    expect(others).toEqual([])
    expect(mistake).toContain('database.url: expected sqlite://<path> or postgres://…')
    expect(mistake).toContain(message)
    expect(mistake).not.toContain('hunter2')
  })

  it('is checked in every storage mode', () => {
    const paths: string[] = []
    checkStorage({ database: { url: 'mysql://host' } }, (path) => paths.push(path.join('.')))
    expect(paths).toEqual(['database.url'])
  })

  it('selects the database by its scheme', () => {
    expect(isPostgresUrl('postgresql://host/db')).toBe(true)
    expect(isPostgresUrl('sqlite:///a.db')).toBe(false)
    expect(sqlitePathOf('SQLite://data/a.db?mode=rwc')).toBe('data/a.db')
  })
})
