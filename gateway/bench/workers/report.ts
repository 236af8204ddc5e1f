import type { WorkerFigure, WorkersResult } from './workers.ts'

/** The figures as text, one line for each name and a column for each number of workers. */
export function renderWorkers({ cases }: WorkersResult): string[] {
  return cases.flatMap(({ title, figures }) => {
    const rows = Map.groupBy(figures, ({ name }) => name)
    return [title, ...[...rows].map(([name, row]) => `  ${name}: ${row.map(cell).join('; ')}`), '']
  })
}

function cell({ workers, value, unit, target }: WorkerFigure): string {
  const number = value >= 100 ? value.toFixed(0) : value.toFixed(2)
  const count = `${workers} ${workers === 1 ? 'worker' : 'workers'}`
  return `${count} ${number}${unit === '' ? '' : ` ${unit}`}${target === undefined ? '' : ` (target ${target})`}`
}
