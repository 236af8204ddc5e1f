import { isDeepStrictEqual } from 'node:util'
import type { ConfigTree } from '../../config/load/validate.ts'
import { configSchema } from '../../config/schema.ts'
import { formatPath, type Path, valueAt } from '../../schema/path.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../../schema/shape.ts'
import { machineIdentitiesIn } from '../change/machine-identities.ts'
import {
  type Allowances,
  isFilePath,
  isMetadataUrl,
  isSocket,
  machineIdentities,
  socketsRestriction,
} from '../change/restrictions.ts'
import { isTree } from '../hybrid/overlay.ts'
import type { ChangedPart } from './config-changes.ts'

/** Permissions of a text that the API writes to the configuration file. */
export type TextAllowances = Allowances & { readonly allowedEnv?: readonly string[] | undefined }

export type TextChange = {
  readonly text: string
  readonly previousText: string
  readonly changes: readonly ChangedPart[]
  readonly before: ConfigTree
  readonly after: ConfigTree
}

/**
 * Reason why the API must not write a text to the configuration file, or undefined. As for records: programs,
 * files and identities of the machine, metadata addresses and references to the environment need a
 * permission, unless the file has them already. The permissions themselves cannot be changed through the API.
 */
export function findTextRestriction(change: TextChange, allowances: TextAllowances): string | undefined {
  const own = ownSettings.find(
    (path) => !isDeepStrictEqual(valueAt(change.before, path), valueAt(change.after, path)),
  )
  if (own !== undefined)
    return `${formatPath(own)} cannot be changed through the API: change it in the file on its machine`
  const added = [
    ...change.changes.flatMap(({ path, after }) => [...restrictedValues(after, path, allowances)]),
    ...identities(change.after, allowances),
  ]
  const known = added.length === 0 ? undefined : knownValues(change.before, allowances)
  const fresh = added.find(({ text }) => known?.has(text) !== true)
  if (fresh?.setting === undefined && fresh !== undefined) return `${formatPath(fresh.path)}: ${fresh.what}`
  if (fresh !== undefined) {
    const setting = `config.storage.${fresh.setting}: true`
    return `${formatPath(fresh.path)}: ${fresh.what} cannot be set through the API unless the file has ${setting}`
  }
  const names = new Set([...variablesIn(change.previousText), ...(allowances.allowedEnv ?? [])])
  const variable = [...variablesIn(change.text)].find((name) => !names.has(name))
  if (variable === undefined) return undefined
  return `a reference to the environment variable ${variable.slice(0, 100)} cannot be set through the API unless config.storage.allowedEnv of the file contains its name`
}

/** Permissions of the API, and the places of its data. */
const ownSettings: readonly Path[] = [
  ['config', 'storage'],
  ['config', 'database'],
  ['config', 'logging', 'database'],
]

type Restricted = {
  readonly path: Path
  readonly text: string
  readonly what: string
  /** Setting that permits the value; undefined if none does. */
  readonly setting: string | undefined
}

function knownValues(config: ConfigTree, allowances: Allowances): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [section, value] of Object.entries(config))
    for (const { text } of restrictedValues(value, [section], allowances)) found.add(text)
  for (const { text } of identities(config, allowances)) found.add(text)
  return found
}

/** A changed destination of such a credential counts as another one. */
function* identities(config: ConfigTree, { allowMachineIdentity }: Allowances): Generator<Restricted> {
  if (allowMachineIdentity === true) return
  for (const { path, owner } of machineIdentitiesIn(config, alternativesOf(shapeOf(configSchema)))) {
    const text = `identity ${JSON.stringify(owner)}`
    yield { path, text, what: machineIdentities, setting: 'allowMachineIdentity' }
  }
}

function* restrictedValues(value: unknown, path: Path, allowances: Allowances): Generator<Restricted> {
  let shapes: readonly Shape[] = alternativesOf(shapeOf(configSchema))
  for (const step of path) shapes = childShapes(shapes, step)
  const program = path.indexOf('stdio')
  // A part of a program, which was changed.
  if (program !== -1 && value !== undefined && allowances.allowStdioTargets !== true)
    yield { ...programOf(path.slice(0, program + 1)), text: `part ${formatPath(path)}` }
  yield* restrictedIn(value, { path, shapes, allowances })
}

type Place = { readonly path: Path; readonly shapes: readonly Shape[]; readonly allowances: Allowances }

function* restrictedIn(value: unknown, place: Place): Generator<Restricted> {
  const { path, shapes, allowances } = place
  // Free JSON is not configuration; virtual keys have no destinations, and there are many.
  if (path.at(-1) === 'keys' || (shapes.length > 0 && shapes.every(({ kind }) => kind === 'any'))) return
  if (typeof value === 'string') {
    const steps = path.filter((step) => typeof step === 'string')
    if (allowances.allowFilePaths !== true && isFilePath(steps))
      yield { path, text: `file ${value}`, what: 'files of this machine', setting: 'allowFilePaths' }
    else if (isSocket(steps, value))
      yield { path, text: `socket ${value}`, what: socketsRestriction, setting: undefined }
    else if (allowances.allowMetadataAddresses !== true && isMetadataUrl(value))
      yield {
        path,
        text: `address ${value}`,
        what: 'link-local or metadata addresses',
        setting: 'allowMetadataAddresses',
      }
    return
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* restrictedIn(item, below(place, index))
    return
  }
  if (!isTree(value)) return
  for (const [key, member] of Object.entries(value)) {
    if (key === 'stdio' && allowances.allowStdioTargets !== true && member !== undefined)
      yield { ...programOf([...path, key]), text: `stdio ${JSON.stringify(member)}` }
    yield* restrictedIn(member, below(place, key))
  }
}

function programOf(path: Path): Omit<Restricted, 'text'> {
  return { path, what: 'programs to run', setting: 'allowStdioTargets' }
}

function below({ path, shapes, allowances }: Place, step: string | number): Place {
  return { path: [...path, step], shapes: childShapes(shapes, step), allowances }
}

const comment = /^\s*#.*$/gm
const reference = /\$(?:\$|\{([^}:]+)(?::-[^}]*)?\}|([\p{Alphabetic}\p{N}_]+))/gu

/** Names of the variables that a text refers to, without lines that are comments. */
function variablesIn(text: string): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [, braced, bare] of text.replace(comment, '').matchAll(reference)) {
    const name = braced ?? bare
    if (name !== undefined) found.add(name)
  }
  return found
}
