const width = 120
const height = 32

/** A small line plot of a series; decorative, so its figure must be displayed beside it. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const top = Math.max(...values, 0)
  if (values.length < 2 || top === 0) return <div className="h-8 border-b border-line" aria-hidden />
  const points = values.map((value, index) => {
    const x = (index / (values.length - 1)) * width
    const y = height - 2 - (value / top) * (height - 4)
    return `${x.toFixed(1)},${y.toFixed(1)}`
  })
  return (
    <svg
      aria-hidden="true"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      className="h-8 w-full text-accent"
    >
      <polygon
        points={`0,${height} ${points.join(' ')} ${width},${height}`}
        fill="currentColor"
        opacity="0.12"
      />
      <polyline
        points={points.join(' ')}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  )
}
