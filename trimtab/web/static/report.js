// Ticks of an undated chart: whole fractions of a day, so that "day 2" stands where day 2 begins.
const STEPS = [1 / 96, 1 / 24, 1 / 8, 1 / 4, 1 / 2, 1, 2, 7, 14, 28].map((days) => days * 86400);

// One zoomable chart for each element of class "chart"; its data stands in the JSON below it.
const COLOURS = ["#8b95a5", "#94a3b8", "#0891b2", "#c026d3", "#d97706", "#15803d"];
const style = getComputedStyle(document.body);
const ink = style.getPropertyValue("--soft"), grid = style.getPropertyValue("--line");

// A made-up load begins on day 1 of nowhere; a recorded one has a calendar.
function day(second) {
  const clock = new Date(second * 1000).toISOString().slice(11, 16);
  return "day " + (Math.floor(second / 86400) + 1) + (clock === "00:00" ? "" : " " + clock);
}

function draw(place) {
  const chart = JSON.parse(place.querySelector("script").textContent);
  const times = chart.lines[0].values.map((_, step) => chart.start + step * chart.step_s);
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const lines = chart.lines.map((line, number) => ({
    label: line.name,
    stroke: COLOURS[number % COLOURS.length],
    width: number === 0 ? 1 : 1.5,
    fill: number === 0 ? "#8b95a533" : undefined,
    points: { show: false },
    paths: number === 0 ? undefined : uPlot.paths.stepped({ align: 1 }),
  }));
  const options = {
    width: place.clientWidth,
    height: 280,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    scales: { x: { time: chart.start > 4e8 }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
    axes: [
      chart.start > 4e8 ? axis : { ...axis, space: 90, incrs: STEPS, values: (_, at) => at.map(day) },
      axis,
    ],
    series: [chart.start > 4e8 ? {} : { label: "Time", value: (_, s) => (s === null ? "" : day(s)) }, ...lines],
    cursor: { sync: { key: "all" } },
  };
  const drawn = new uPlot(options, [times, ...chart.lines.map((line) => line.values)], place);
  addEventListener("resize", () => drawn.setSize({ width: place.clientWidth, height: 280 }));
}

document.querySelectorAll(".chart").forEach(draw);
