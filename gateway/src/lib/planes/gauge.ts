import { acquireLock, releaseLock } from './lock.ts'
import type { Memory, Region } from './memory.ts'

/** Amount in use in all data planes, up to 2^31 - 1. */
export type Gauge = {
  /** Adds a positive amount, unless the total would exceed `max`. */
  tryAdd(by: number, max: number): boolean
  /** Subtracts an amount that this data plane has added. */
  subtract(by: number): void
  /** Total of all data planes. */
  total(): number
}

/** Start of the names of regions with a gauge. */
export const gaugePrefix = 'gauge/'

/** Index of the first column; the lock and its description are before it. */
const firstColumn = 4

/**
 * Creates a gauge. Each data plane has a column, which a replacement of the data plane clears on first use
 */
export function createGauge(memory: Memory, name: string): Gauge {
  const { plane, planes } = memory
  const words = firstColumn + planes
  const region = memory.region(gaugePrefix + name, 4 * (words + (words % 2)))
  let isStarted = false

  function cells(): Int32Array {
    if (!isStarted) {
      isStarted = true
      clearGauge(region, plane)
    }
    return region.int32
  }

  return {
    tryAdd: (by, max) => tryAdd({ cells: cells(), first: firstColumn, plane, planes }, by, max),
    subtract: (by) => subtract({ cells: cells(), first: firstColumn, plane, planes }, by),
    total: () => sumOf(cells(), firstColumn, planes),
  }
}

/** Clears the column of a data plane that has failed. */
export function clearGauge({ int32 }: Region, plane: number): void {
  Atomics.store(int32, firstColumn + plane, 0)
}

/** Columns of an amount: a word per data plane. The lock of their region is `cells[0]`. */
export type Columns = {
  readonly cells: Int32Array
  readonly first: number
  readonly plane: number
  readonly planes: number
}

/**
 * Adds to the column of this data plane, unless the total would exceed `max`. The addition precedes the
 * check, so that the last one above a maximum is always detected. It may refuse additions at the same time,
 * hence a refusal is checked again.
 */
export function tryAdd({ cells, first, plane, planes }: Columns, by: number, max: number): boolean {
  const own = first + plane
  if (planes === 1) {
    const fits = (cells[own] ?? 0) + by <= max
    if (fits) cells[own] = (cells[own] ?? 0) + by
    return fits
  }
  Atomics.add(cells, own, by)
  if (sumOf(cells, first, planes) <= max) return true
  Atomics.sub(cells, own, by)
  return tryAgain({ cells, first, plane, planes }, by, max)
}

/** Subtracts from the column of this data plane. */
export function subtract({ cells, first, plane, planes }: Columns, by: number): void {
  const own = first + plane
  if (planes === 1) cells[own] = (cells[own] ?? 0) - by
  else Atomics.sub(cells, own, by)
}

/** Attempts after a refusal. Each lasts longer than an addition that another data plane takes back. */
const attempts = 50

/** Under the lock, only first attempts of other data planes interfere. */
function tryAgain({ cells, first, plane, planes }: Columns, by: number, max: number): boolean {
  const own = first + plane
  acquireLock(cells, 0, plane)
  let fits = false
  for (let attempt = 0; attempt < attempts && !fits; attempt++) {
    if (sumOf(cells, first, planes) + by > max) continue
    Atomics.add(cells, own, by)
    fits = sumOf(cells, first, planes) <= max
    if (!fits) Atomics.sub(cells, own, by)
  }
  releaseLock(cells, 0)
  return fits
}

/** Total of the columns. */
export function sumOf(cells: Int32Array, first: number, planes: number): number {
  let sum = 0
  for (let index = first; index < first + planes; index++) sum += Atomics.load(cells, index)
  return sum
}
