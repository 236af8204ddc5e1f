import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Microseconds of self time for each request, by function or by the part it belongs to. */
export type ProfileLine = { place: string; relay: number; tollgate: number }

export type ProfileReport = { parts: ProfileLine[]; functions: ProfileLine[] }

type CallFrame = { functionName: string; url: string; lineNumber: number }

export type CpuProfile = {
  /** Microseconds of the system's monotonic clock, which is the same in every process. */
  startTime: number
  nodes: { id: number; callFrame: CallFrame }[]
  samples: number[]
  timeDeltas: number[]
}

/** One profiled process: how many requests it served from `sinceMicros` of the monotonic clock on. */
export type Profiled = { profile: CpuProfile; sinceMicros: number; requests: number }

/** Reads the profile a process has left behind at its end, by its id. */
export function readProfile(folder: string, processId: number | undefined): CpuProfile {
  const file = readdirSync(folder).find(
    (name) => name.endsWith('.cpuprofile') && name.includes(`.${processId}.`),
  )
  if (!file) throw new Error(`process ${processId} left no profile behind`)
  const profile: CpuProfile = JSON.parse(readFileSync(join(folder, file), 'utf8'))
  return profile
}

/** CPU time by function of two processes under the same load, sorted by Tollgate's excess. */
export function compareProfiles(tollgate: Profiled, relay: Profiled): ProfileReport {
  const compare = (placeOf: (frame: CallFrame) => string): ProfileLine[] => {
    const [ours, theirs] = [selfTimes(tollgate, placeOf), selfTimes(relay, placeOf)]
    return [...new Set([...ours.keys(), ...theirs.keys()])]
      .map((place) => ({ place, relay: theirs.get(place) ?? 0, tollgate: ours.get(place) ?? 0 }))
      .toSorted((a, b) => b.tollgate - b.relay - (a.tollgate - a.relay))
  }
  return { parts: compare(partOf), functions: compare(functionOf) }
}

/** Self time in microseconds per request, without idle time and the time before the measurement. */
function selfTimes(
  { profile, sinceMicros, requests }: Profiled,
  placeOf: (frame: CallFrame) => string,
): Map<string, number> {
  const places = new Map(profile.nodes.map((node) => [node.id, placeOf(node.callFrame)]))
  const micros = new Map<string, number>()
  let now = profile.startTime
  profile.samples.forEach((id, index) => {
    const delta = profile.timeDeltas[index] ?? 0
    now += delta
    const place = places.get(id) ?? 'unknown'
    if (now < sinceMicros || place === '(idle)') return
    micros.set(place, (micros.get(place) ?? 0) + delta / requests)
  })
  return micros
}

function functionOf(frame: CallFrame): string {
  const name = frame.functionName || '(anonymous)'
  return frame.url ? `${name} ${shortPath(frame.url)}:${frame.lineNumber + 1}` : name
}

/** Our own files one by one, packages and the runtime as a whole, native functions by name. */
function partOf(frame: CallFrame): string {
  if (!frame.url) return frame.functionName || '(anonymous)'
  const path = shortPath(frame.url)
  if (path.startsWith('node:')) return 'runtime, in JavaScript'
  if (path.startsWith('wasm:')) return 'HTTP parser of undici'
  const [folder, name = ''] = path.split('/')
  return folder === 'node_modules' ? `package ${name}` : path
}

function shortPath(url: string): string {
  return url.replace(/^file:\/\//, '').replace(/^.*\/(node_modules|gateway)\//, '$1/')
}
