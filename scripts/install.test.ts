import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { isInstalled } from './install.mjs'

type Packages = Record<string, { version?: string; optional?: boolean; link?: boolean }>

const folders: string[] = []

/** A checkout whose lock file wants some packages and whose node_modules has some. */
function checkout(wanted: Packages, present: Packages | string, onDisk = Object.keys(present)): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-install-'))
  folders.push(folder)
  mkdirSync(join(folder, 'node_modules'))
  for (const path of onDisk) mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: { '': {}, ...wanted } }))
  const noted = typeof present === 'string' ? present : JSON.stringify({ packages: present })
  writeFileSync(join(folder, 'node_modules', '.package-lock.json'), noted)
  return folder
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

describe('isInstalled', () => {
  const wanted = { 'node_modules/a': { version: '1.0.0' } }

  it('is true where every wanted package is there', () => {
    expect(isInstalled(checkout(wanted, wanted))).toBe(true)
  })

  it('is false for a package that is missing or has another version', () => {
    expect(isInstalled(checkout(wanted, {}))).toBe(false)
    expect(isInstalled(checkout(wanted, { 'node_modules/a': { version: '1.0.1' } }))).toBe(false)
  })

  it('is false for a package that npm noted and somebody removed', () => {
    expect(isInstalled(checkout(wanted, wanted, []))).toBe(false)
  })

  it('does without optional packages of other systems, but not with a wrong version of one', () => {
    const other = { ...wanted, 'node_modules/b-other': { version: '2.0.0', optional: true } }
    expect(isInstalled(checkout(other, wanted))).toBe(true)
    const old = { ...wanted, 'node_modules/b-other': { version: '1.9.0', optional: true } }
    expect(isInstalled(checkout(other, old))).toBe(false)
  })

  it('leaves the workspaces and their links aside', () => {
    const workspace = { ...wanted, gateway: { version: '0.1.0' }, 'node_modules/tollgate': { link: true } }
    expect(isInstalled(checkout(workspace, wanted))).toBe(true)
  })

  it('is false after an install that was interrupted', () => {
    expect(isInstalled(checkout(wanted, '{"packages": {', ['node_modules/a']))).toBe(false)
    const folder = checkout(wanted, wanted)
    rmSync(join(folder, 'node_modules', '.package-lock.json'))
    expect(isInstalled(folder)).toBe(false)
  })
})
