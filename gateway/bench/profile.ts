import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type ProfileLine = { place: string; selfMs: number; share: number }

type CpuProfile = {
  /** Microseconds of the system's monotonic clock, which is the same in every process. */
  startTime: number
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  samples: number[]
  timeDeltas: number[]
}

/**
 * Where the CPU time of the newest `.cpuprofile` in a folder went: functions by self time, idle time left out.
 * Counts from `sinceMicros` of the monotonic clock on, so that start-up and warm-up stay out.
 */
export function summariseProfile(folder: string, sinceMicros: number): ProfileLine[] {
  const file = readdirSync(folder).findLast((name) => name.endsWith('.cpuprofile'))
  if (!file) throw new Error('no profile was written')
  const profile: CpuProfile = JSON.parse(readFileSync(join(folder, file), 'utf8'))
  return selfTimes(profile, sinceMicros)
}

/** Functions of a profile by self time, the longest first. */
export function selfTimes(profile: CpuProfile, sinceMicros: number): ProfileLine[] {
  const places = new Map(profile.nodes.map((node) => [node.id, placeOf(node.callFrame)]))
  const micros = new Map<string, number>()
  let now = profile.startTime
  profile.samples.forEach((id, index) => {
    const delta = profile.timeDeltas[index] ?? 0
    now += delta
    if (now < sinceMicros) return
    const place = places.get(id) ?? 'unknown'
    micros.set(place, (micros.get(place) ?? 0) + delta)
  })
  micros.delete('(idle)')
  const total = [...micros.values()].reduce((sum, value) => sum + value, 0)
  return [...micros]
    .map(([place, value]) => ({ place, selfMs: value / 1000, share: value / total }))
    .toSorted((a, b) => b.selfMs - a.selfMs)
}

function placeOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  const name = functionName || '(anonymous)'
  if (!url) return name
  const short = url.replace(/^file:\/\//, '').replace(/^.*\/(node_modules|gateway)\//, '$1/')
  return `${name} ${short}:${lineNumber + 1}`
}
