/** Sounds of stones, made by WebAudio: nothing is loaded. */

export function newSound() {
  let context = null;

  /** A short burst of noise through a resonant filter: a stone on wood. */
  function knock(after, frequency, strength, length) {
    const rate = context.sampleRate, buffer = context.createBuffer(1, Math.ceil(rate * length), rate);
    const samples = buffer.getChannelData(0);
    for (let i = 0; i < samples.length; i++) {
      samples[i] = (Math.random() * 2 - 1) * Math.exp((-9 * i) / samples.length);
    }
    const source = context.createBufferSource(), filter = context.createBiquadFilter(), gain = context.createGain();
    source.buffer = buffer;
    filter.type = "bandpass"; filter.frequency.value = frequency; filter.Q.value = 2.2;
    gain.gain.value = strength;
    source.connect(filter).connect(gain).connect(context.destination);
    source.start(context.currentTime + after);
  }

  // A browser lets a page sound only after a gesture.
  const wake = () => {
    context ??= new AudioContext();
    if (context.state === "suspended") context.resume();
  };
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, wake, { passive: true });

  return {
    /** A move: a stone, one with captured stones, or a pass. */
    move(isPass, captured) {
      if (context?.state !== "running") return;
      if (isPass) return knock(0, 420, 0.7, 0.16);
      knock(0, 1350, 1.6, 0.07);
      knock(0.004, 520, 1.1, 0.1);
      for (let n = 0; n < Math.min(captured, 6); n++) {
        knock(0.18 + 0.055 * n + 0.02 * Math.random(), 2300 + 160 * n, 0.7, 0.05);
      }
    },
  };
}
